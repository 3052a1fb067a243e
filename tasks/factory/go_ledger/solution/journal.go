package task

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"
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

var (
	account  = regexp.MustCompile(`^[A-Za-z0-9_-]+(:[A-Za-z0-9_-]+)*$`)
	currency = regexp.MustCompile(`^[A-Z]{1,10}$`)
	date     = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
)

type open struct {
	Transaction
	line    int
	omitted int // index of the posting without an amount, or -1
	count   int
}

func (o *open) fail(text string) error { return &ParseError{o.line, text} }

func (o *open) close() (Transaction, error) {
	if o.count < 2 {
		return Transaction{}, o.fail("fewer than two postings")
	}
	sums := map[string]Units{}
	for _, p := range o.Postings {
		sums[p.Currency] += p.Units
	}
	delete(sums, "")
	var missing []Posting
	for name, sum := range sums {
		if sum != 0 {
			missing = append(missing, Posting{"", -sum, name})
		}
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i].Currency < missing[j].Currency })
	if o.omitted < 0 {
		if len(missing) > 0 {
			return Transaction{}, o.fail("the postings do not add up")
		}
		return o.Transaction, nil
	}
	if len(missing) == 0 {
		return Transaction{}, o.fail("there is no amount to leave out")
	}
	for i := range missing {
		missing[i].Account = o.Postings[o.omitted].Account
	}
	all := append([]Posting{}, o.Postings[:o.omitted]...)
	all = append(append(all, missing...), o.Postings[o.omitted+1:]...)
	o.Postings = all
	return o.Transaction, nil
}

func (o *open) add(line int, text string) error {
	words := strings.FieldsFunc(text, isBlank)
	if !account.MatchString(words[0]) {
		return &ParseError{line, "not an account"}
	}
	o.count++
	if len(words) == 1 {
		if o.omitted >= 0 {
			return o.fail("more than one amount is left out")
		}
		o.omitted = len(o.Postings)
		o.Postings = append(o.Postings, Posting{Account: words[0]})
		return nil
	}
	if len(words) != 3 || !currency.MatchString(words[2]) {
		return &ParseError{line, "not an amount"}
	}
	units, err := ParseUnits(words[1])
	if err != nil {
		return &ParseError{line, err.Error()}
	}
	o.Postings = append(o.Postings, Posting{words[0], units, words[2]})
	return nil
}

func begin(line int, text string) (*open, error) {
	day, description := text, ""
	if at := strings.IndexFunc(text, isBlank); at >= 0 {
		day, description = text[:at], strings.TrimFunc(text[at:], isBlank)
	}
	if _, err := time.Parse("2006-01-02", day); err != nil || !date.MatchString(day) {
		return nil, &ParseError{line, "not a date"}
	}
	if description == "" {
		return nil, &ParseError{line, "the description is missing"}
	}
	return &open{Transaction{day, description, nil}, line, -1, 0}, nil
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\r' }

// Parse reads a journal. Errors are of type *ParseError.
func Parse(text string) ([]Transaction, error) {
	all := []Transaction{}
	var current *open
	finish := func() error {
		if current == nil {
			return nil
		}
		done, err := current.close()
		all, current = append(all, done), nil
		return err
	}
	for i, line := range strings.Split(text, "\n") {
		if at := strings.IndexByte(line, ';'); at >= 0 {
			line = line[:at]
		}
		if strings.TrimFunc(line, isBlank) == "" {
			continue
		}
		var err error
		if line[0] == ' ' || line[0] == '\t' {
			if current == nil {
				return nil, &ParseError{i + 1, "a posting without a transaction"}
			}
			err = current.add(i+1, line)
		} else if err = finish(); err == nil {
			current, err = begin(i+1, line)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return all, nil
}
