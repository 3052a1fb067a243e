package task

import (
	"fmt"
	"strings"
)

// Diff gives a unified diff from old to new with the given number of lines of context, without file names: only hunks. No difference
// gives "".
//
//	@@ -1,4 +1,5 @@
//	 a line that stays
//	-a line that goes
//	+a line that comes
//
// A hunk's head has the first line (from 1) and the number of lines in old and in new; a number of 1 is left out with its comma, and where
// the number is 0 the line is the one before (0 at the beginning). Changes whose contexts touch or overlap are one hunk: at most
// 2*context lines stay between them.
//
// A line's end belongs to the line. A last line without one is followed by `\ No newline at end of file` and differs from the same line
// with one.
//
// The number of lines that go and come is the smallest possible. Among those, lines go before lines come within a change.
func Diff(old, new string, context int) string {
	edits := script(splitLines(old), splitLines(new))
	var out strings.Builder
	for at := 0; at < len(edits); {
		first := at
		for first < len(edits) && edits[first].kind == ' ' {
			first++
		}
		if first == len(edits) {
			break
		}
		last := first // the last change of this hunk
		for i := first; i < len(edits) && i-last-1 <= 2*context; i++ {
			if edits[i].kind != ' ' {
				last = i
			}
		}
		from, to := first-context, last+context+1
		if from < at {
			from = at
		}
		if to > len(edits) {
			to = len(edits)
		}
		writeHunk(&out, edits, from, to)
		at = to
	}
	return out.String()
}

type edit struct {
	kind byte // ' ', '-' or '+'
	line string
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func script(a, b []string) []edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var edits []edit
	for _, line := range a[:head] {
		edits = append(edits, edit{' ', line})
	}
	edits = append(edits, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range a[len(a)-tail:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

// The longest common subsequence by table.
func middle(a, b []string) []edit {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			switch {
			case a[i] == b[j]:
				common[i][j] = common[i+1][j+1] + 1
			case common[i+1][j] >= common[i][j+1]:
				common[i][j] = common[i+1][j]
			default:
				common[i][j] = common[i][j+1]
			}
		}
	}
	var edits, comes []edit
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(append(edits, comes...), edit{' ', a[i]})
			comes = nil
			i++
			j++
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			comes = append(comes, edit{'+', b[j]})
			j++
		}
	}
	return append(edits, comes...)
}

func span(before, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, count)
}

func count(edits []edit, other byte) int {
	n := 0
	for _, e := range edits {
		if e.kind != other {
			n++
		}
	}
	return n
}

func writeHunk(out *strings.Builder, edits []edit, from, to int) {
	before, hunk := edits[:from], edits[from:to]
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(count(before, '+'), count(hunk, '+')), span(count(before, '-'), count(hunk, '-')))
	for _, e := range hunk {
		out.WriteByte(e.kind)
		out.WriteString(e.line)
		if !strings.HasSuffix(e.line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
