package task

import (
	"fmt"
	"strings"
)

// ParseError is a mistake in a journal.
type ParseError struct {
	Line int
	Text string
}

func (e *ParseError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// Posting is a change of one account.
type Posting struct {
	Account  string
	Units    Units
	Currency string
}

// Transaction is a row of postings that adds up to zero.
type Transaction struct {
	Date        string
	Description string
	Postings    []Posting
}

// Parse reads a journal. Errors are of type *ParseError.
func Parse(text string) ([]Transaction, error) {
	var all []Transaction
	for n, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, ";") || strings.TrimSpace(line) == "" {
			continue
		}
		words := strings.Fields(line)
		if line[0] != ' ' {
			all = append(all, Transaction{Date: words[0], Description: strings.Join(words[1:], " ")})
			continue
		}
		last := &all[len(all)-1]
		if len(words) == 1 {
			var sum Units
			for _, p := range last.Postings {
				sum += p.Units
			}
			last.Postings = append(last.Postings, Posting{words[0], sum, last.Postings[0].Currency})
			continue
		}
		units, err := ParseUnits(words[1])
		if err != nil {
			return nil, &ParseError{n, err.Error()}
		}
		last.Postings = append(last.Postings, Posting{words[0], units, words[2]})
	}
	for n, t := range all {
		var sum Units
		for _, p := range t.Postings {
			sum += p.Units
		}
		if sum != 0 {
			return nil, &ParseError{n, "the postings do not add up"}
		}
	}
	return all, nil
}
