package task

// Filter is a parsed expression.
type Filter struct {
}

// Match says whether a record fits.
func (f *Filter) Match(record map[string]string) bool {
	return false
}
