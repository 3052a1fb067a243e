package task

import "strconv"

type parser struct {
	tokens []Token
	at     int
	depth  int
}

func (p *parser) peek() Token { return p.tokens[p.at] }

func (p *parser) next() Token {
	token := p.tokens[p.at]
	if token.Kind != End {
		p.at++
	}
	return token
}

func (p *parser) accept(kind int, text string) bool {
	if token := p.peek(); token.Kind == kind && token.Text == text {
		p.at++
		return true
	}
	return false
}

func wrong(token Token, text string) error { return &SyntaxError{token.Offset, text} }

func (p *parser) row(word string, part func() (node, error), join func([]node) node) (node, error) {
	first, err := part()
	if err != nil {
		return nil, err
	}
	parts := []node{first}
	for p.accept(Word, word) {
		other, err := part()
		if err != nil {
			return nil, err
		}
		parts = append(parts, other)
	}
	if len(parts) == 1 {
		return first, nil
	}
	return join(parts), nil
}

func (p *parser) expression() (node, error) {
	return p.row("or", p.conjunction, func(parts []node) node { return anyOf(parts) })
}

func (p *parser) conjunction() (node, error) {
	return p.row("and", p.negation, func(parts []node) node { return allOf(parts) })
}

const maxDepth = 100

func (p *parser) negation() (node, error) {
	token := p.peek()
	isNot := token.Kind == Word && token.Text == "not"
	if !isNot && !(token.Kind == Sign && token.Text == "(") {
		return p.comparison()
	}
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, wrong(token, "nested too deep")
	}
	p.next()
	if isNot {
		inner, err := p.negation()
		return negated{inner}, err
	}
	inner, err := p.expression()
	if err != nil {
		return nil, err
	}
	if !p.accept(Sign, ")") {
		if p.peek().Kind == End {
			return nil, wrong(token, "a parenthesis is never closed")
		}
		return nil, wrong(p.peek(), ") is missing")
	}
	return inner, nil
}

func isName(token Token) bool {
	switch token.Text {
	case "and", "or", "not", "in", "exists":
		return false
	}
	return token.Kind == Word
}

func (p *parser) comparison() (node, error) {
	name := p.next()
	if !isName(name) {
		return nil, wrong(name, "a name is wanted")
	}
	sign := p.next()
	switch {
	case sign.Kind == Word && sign.Text == "exists":
		return exists{name.Text}, nil
	case sign.Kind == Word && sign.Text == "in":
		values, err := p.values()
		return member{name.Text, values, false}, err
	case sign.Kind == Word && sign.Text == "not":
		if in := p.next(); in.Kind != Word || in.Text != "in" {
			return nil, wrong(in, "in is wanted")
		}
		values, err := p.values()
		return member{name.Text, values, true}, err
	case sign.Kind == Sign && sign.Text == "~":
		pattern := p.next()
		if pattern.Kind != Text {
			return nil, wrong(pattern, "a text is wanted")
		}
		return like{name.Text, []rune(pattern.Text)}, nil
	case sign.Kind == Sign && sign.Text != "(" && sign.Text != ")" && sign.Text != ",":
		v, err := p.value()
		return comparison{name.Text, sign.Text, v}, err
	}
	return nil, wrong(sign, "a comparison is wanted")
}

func (p *parser) value() (value, error) {
	token := p.next()
	switch token.Kind {
	case Text:
		return value{text: token.Text}, nil
	case Number:
		number, _ := strconv.ParseFloat(token.Text, 64)
		return value{number: number, isNumber: true}, nil
	}
	return value{}, wrong(token, "a text or a number is wanted")
}

func (p *parser) values() ([]value, error) {
	open := p.peek()
	if !p.accept(Sign, "(") {
		return nil, wrong(open, "( is wanted")
	}
	var values []value
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if p.accept(Sign, ")") {
			return values, nil
		}
		if !p.accept(Sign, ",") {
			if p.peek().Kind == End {
				return nil, wrong(open, "a parenthesis is never closed")
			}
			return nil, wrong(p.peek(), ", or ) is wanted")
		}
	}
}

// Parse reads an expression. Errors are of type *SyntaxError.
func Parse(source string) (*Filter, error) {
	tokens, err := Lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	root, err := p.expression()
	if err != nil {
		return nil, err
	}
	if last := p.peek(); last.Kind != End {
		return nil, wrong(last, "the expression has ended here")
	}
	return &Filter{root}, nil
}
