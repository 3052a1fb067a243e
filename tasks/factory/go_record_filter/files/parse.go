package task

// Parse reads an expression. Errors are of type *SyntaxError.
func Parse(source string) (*Filter, error) {
	_, err := Lex(source)
	return &Filter{}, err
}
