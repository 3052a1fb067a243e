package task

import (
	"fmt"
	"sort"
	"strings"
)

// Report lists the balances of all accounts.
func Report(transactions []Transaction) string {
	type place struct{ account, currency string }
	balances := map[place]Units{}
	for _, t := range transactions {
		for _, p := range t.Postings {
			names := strings.Split(p.Account, ":")
			for n := range names {
				balances[place{strings.Join(names[:n+1], ":"), p.Currency}] += p.Units
			}
		}
	}
	var places []place
	for at, units := range balances {
		if units != 0 {
			places = append(places, at)
		}
	}
	// A colon sorts before everything that may stand in a name.
	key := func(at place) string { return strings.ReplaceAll(at.account, ":", "\x01") }
	sort.Slice(places, func(i, j int) bool {
		a, b := key(places[i]), key(places[j])
		return a < b || a == b && places[i].currency < places[j].currency
	})
	var out strings.Builder
	for _, at := range places {
		fmt.Fprintf(&out, "%s\t%s %s\n", at.account, balances[at], at.currency)
	}
	return out.String()
}
