package task

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
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
	hunks, err := parse(diff)
	if err != nil {
		return text, err
	}
	lines := splitLines(text)
	var out []string
	done, moved := 0, 0
	for n, h := range hunks {
		at := find(lines, h.old, h.start+moved, done)
		if at < 0 {
			return text, fmt.Errorf("hunk %d: %w", n+1, ErrConflict)
		}
		moved = at - h.start
		out = append(append(out, lines[done:at]...), h.new...)
		done = at + len(h.old)
	}
	return strings.Join(append(out, lines[done:]...), ""), nil
}

type hunk struct {
	start    int // lines before it
	old, new []string
}

var head = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

func fits(lines, old []string, at int) bool {
	if at+len(old) > len(lines) {
		return false
	}
	for i, line := range old {
		if lines[at+i] != line {
			return false
		}
	}
	return true
}

func find(lines, old []string, wanted, low int) int {
	if len(old) == 0 {
		if wanted > len(lines) {
			wanted = len(lines)
		}
		if wanted < low {
			wanted = low
		}
		return wanted
	}
	for distance := 0; wanted-distance >= low || wanted+distance <= len(lines); distance++ {
		if at := wanted - distance; at >= low && fits(lines, old, at) {
			return at
		}
		if at := wanted + distance; at >= low && fits(lines, old, at) {
			return at
		}
	}
	return -1
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

func parse(diff string) ([]hunk, error) {
	lines := splitLines(diff)
	var hunks []hunk
	at := 0
	for at < len(lines) && !strings.HasPrefix(lines[at], "@@") {
		at++
	}
	for at < len(lines) {
		h, next, ok := parseHunk(lines, at)
		if !ok {
			return nil, fmt.Errorf("hunk %d: %w", len(hunks)+1, ErrMalformed)
		}
		hunks = append(hunks, h)
		at = next
	}
	return hunks, nil
}

func parseHunk(lines []string, at int) (h hunk, next int, ok bool) {
	found := head.FindStringSubmatch(lines[at])
	if found == nil {
		return h, at, false
	}
	oldCount, newCount := number(found[2], 1), number(found[4], 1)
	h.start = number(found[1], 0)
	if oldCount > 0 {
		h.start--
	}
	if h.start < 0 {
		return h, at, false
	}
	var last byte
	for at++; at < len(lines); at++ {
		line := lines[at]
		if line[0] == '\\' {
			if last == 0 || !chop(&h, last) {
				return h, at, false
			}
			last = 0
			continue
		}
		if len(h.old) == oldCount && len(h.new) == newCount {
			break
		}
		last = line[0]
		if last == '\n' {
			last, line = ' ', " \n"
		}
		if last != ' ' && last != '-' && last != '+' || len(line) == 1 || !strings.HasSuffix(line, "\n") {
			return h, at, false
		}
		if last != '+' {
			h.old = append(h.old, line[1:])
		}
		if last != '-' {
			h.new = append(h.new, line[1:])
		}
	}
	return h, at, len(h.old) == oldCount && len(h.new) == newCount
}

// Takes the line's end from the last line of a kind.
func chop(h *hunk, kind byte) bool {
	if kind != '+' {
		h.old[len(h.old)-1] = strings.TrimSuffix(h.old[len(h.old)-1], "\n")
	}
	if kind != '-' {
		h.new[len(h.new)-1] = strings.TrimSuffix(h.new[len(h.new)-1], "\n")
	}
	return true
}
