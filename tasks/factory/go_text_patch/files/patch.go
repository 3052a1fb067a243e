package task

import (
	"errors"
)

// ErrMalformed: what was given is no diff of hunks.
var ErrMalformed = errors.New("malformed diff")

// ErrConflict: a hunk fits nowhere.
var ErrConflict = errors.New("conflict")

// Apply gives the text with a diff of hunks applied. Lines before the first hunk (file names) are left out; behind a head there must be
// exactly as many lines as it says, and then the next head or the end, otherwise the error is ErrMalformed. A head may have text
// behind its second "@@". The lines of a head are as in Diff. An empty line in a hunk stands for an empty line that stays, " ".
//
// A hunk's old lines (those that stay and go) must be in the text. They are looked for at the place that its head says, moved by
// as much as the hunk before was moved; then one line earlier, one later, two earlier, and so on, but never before the end of the hunk
// before it. The first place that fits is taken. A hunk without old lines is put at its place, or at the end of a shorter text. When
// a hunk fits nowhere the error is ErrConflict, and the text comes back as it was.
//
// Errors are wrapped (errors.Is) and their text begins with "hunk N: ", N from 1.
func Apply(text, diff string) (string, error) {
	return text, errors.New("not implemented")
}
