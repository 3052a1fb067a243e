package task

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
	if old == new {
		return ""
	}
	return "@@ -1 +1 @@\n-" + old + "+" + new
}
