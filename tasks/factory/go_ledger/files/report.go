package task

import (
	"fmt"
	"strings"
)

// Report lists the balances of all accounts.
func Report(transactions []Transaction) string {
	balances := map[string]Units{}
	for _, t := range transactions {
		for _, p := range t.Postings {
			balances[p.Account+"\t"+p.Currency] += p.Units
		}
	}
	var out strings.Builder
	for key, units := range balances {
		parts := strings.Split(key, "\t")
		fmt.Fprintf(&out, "%s\t%s %s\n", parts[0], units, parts[1])
	}
	return out.String()
}
