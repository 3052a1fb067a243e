package task

import (
	"strconv"
	"strings"
)

// Filter is a parsed expression.
type Filter struct {
	root node
}

type node interface {
	match(record map[string]string) bool
}

type anyOf []node
type allOf []node
type negated struct{ inner node }
type exists struct{ name string }
type like struct {
	name    string
	pattern []rune
}
type comparison struct {
	name, sign string
	value      value
}
type member struct {
	name    string
	values  []value
	negated bool
}
type value struct {
	text     string
	number   float64
	isNumber bool
}

func (n anyOf) match(record map[string]string) bool {
	for _, part := range n {
		if part.match(record) {
			return true
		}
	}
	return false
}

func (n allOf) match(record map[string]string) bool {
	for _, part := range n {
		if !part.match(record) {
			return false
		}
	}
	return true
}

func (n negated) match(record map[string]string) bool { return !n.inner.match(record) }

func (n exists) match(record map[string]string) bool {
	_, ok := record[n.name]
	return ok
}

// Compares a record's text with a value: -1, 0 or 1, and whether they can be compared.
func (v value) compare(text string) (int, bool) {
	if !v.isNumber {
		return strings.Compare(text, v.text), true
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || number != number:
		return 0, false
	case number < v.number:
		return -1, true
	case number > v.number:
		return 1, true
	}
	return 0, true
}

func (n comparison) match(record map[string]string) bool {
	text, ok := record[n.name]
	if !ok {
		return false
	}
	order, ok := n.value.compare(text)
	if !ok {
		return false
	}
	switch n.sign {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (n member) match(record map[string]string) bool {
	text, ok := record[n.name]
	if !ok {
		return false
	}
	for _, v := range n.values {
		if order, ok := v.compare(text); ok && order == 0 {
			return !n.negated
		}
	}
	return n.negated
}

func (n like) match(record map[string]string) bool {
	given, ok := record[n.name]
	if !ok {
		return false
	}
	text := []rune(given)
	t, p, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(n.pattern) && n.pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(n.pattern) && (n.pattern[p] == '?' || n.pattern[p] == text[t]):
			t++
			p++
		case star >= 0:
			mark++
			t, p = mark, star+1
		default:
			return false
		}
	}
	for p < len(n.pattern) && n.pattern[p] == '*' {
		p++
	}
	return p == len(n.pattern)
}

// Match says whether a record fits.
func (f *Filter) Match(record map[string]string) bool {
	return f.root.match(record)
}
