package task

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// "abc" is the lines a, b and c.
func text(letters string) string {
	if letters == "" {
		return ""
	}
	return strings.Join(strings.Split(letters, ""), "\n") + "\n"
}

func wantDiff(t *testing.T, old, new string, context int, expected string) {
	t.Helper()
	if got := Diff(old, new, context); got != expected {
		t.Errorf("Diff(%q, %q, %d) =\n%s\nwant\n%s", old, new, context, got, expected)
	}
}

func TestNoDifference(t *testing.T) {
	wantDiff(t, "", "", 3, "")
	wantDiff(t, text("abc"), text("abc"), 3, "")
}

func TestOneChange(t *testing.T) {
	wantDiff(t, text("abcdefghi"), text("abcdXfghi"), 2, "@@ -3,5 +3,5 @@\n c\n d\n-e\n+X\n f\n g\n")
	wantDiff(t, text("abc"), text("abXc"), 3, "@@ -1,3 +1,4 @@\n a\n b\n+X\n c\n")
	wantDiff(t, text("abc"), text("ac"), 0, "@@ -2 +1,0 @@\n-b\n")
	wantDiff(t, text("abc"), text("abcd"), 0, "@@ -3,0 +4 @@\n+d\n")
}

func TestBeginningsAndEnds(t *testing.T) {
	wantDiff(t, "", text("ab"), 3, "@@ -0,0 +1,2 @@\n+a\n+b\n")
	wantDiff(t, text("a"), "", 3, "@@ -1 +0,0 @@\n-a\n")
	wantDiff(t, text("abc"), text("Xabc"), 1, "@@ -1 +1,2 @@\n+X\n a\n")
	wantDiff(t, text("abc"), text("abcX"), 1, "@@ -3 +3,2 @@\n c\n+X\n")
}

func TestHunks(t *testing.T) {
	one := "@@ -1,7 +1,7 @@\n-a\n+X\n b\n c\n d\n e\n f\n-g\n+Y\n"
	two := "@@ -1,3 +1,3 @@\n-a\n+X\n b\n c\n@@ -5,3 +5,3 @@\n e\n f\n-g\n+Y\n"
	wantDiff(t, text("abcdefg"), text("XbcdefY"), 3, one)
	wantDiff(t, text("abcdefg"), text("XbcdefY"), 2, two)
	wantDiff(t, text("abcdef"), text("XbcdeY"), 2, "@@ -1,6 +1,6 @@\n-a\n+X\n b\n c\n d\n e\n-f\n+Y\n")
}

func TestGoesBeforeComes(t *testing.T) {
	wantDiff(t, text("aXYb"), text("aPQRb"), 1, "@@ -1,4 +1,5 @@\n a\n-X\n-Y\n+P\n+Q\n+R\n b\n")
}

func TestLastLineWithoutEnd(t *testing.T) {
	note := "\\ No newline at end of file\n"
	wantDiff(t, "a\nb", "a\nb\n", 1, "@@ -1,2 +1,2 @@\n a\n-b\n"+note+"+b\n")
	wantDiff(t, "a\nb", "X\nb", 1, "@@ -1,2 +1,2 @@\n-a\n+X\n b\n"+note)
	wantDiff(t, "a", "", 1, "@@ -1 +0,0 @@\n-a\n"+note)
}

func TestDiffIsShort(t *testing.T) {
	for _, c := range []struct {
		old, new string
		changes  int
	}{{"abcabba", "cbabac", 5}, {"abcdef", "bcdefa", 2}, {"xaxbxcx", "abc", 4}, {"abab", "baba", 2}, {"abc", "def", 6}} {
		n := 0
		for _, line := range strings.Split(Diff(text(c.old), text(c.new), 0), "\n") {
			if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
				n++
			}
		}
		if n != c.changes {
			t.Errorf("%s to %s: %d changed lines, want %d", c.old, c.new, n, c.changes)
		}
	}
}

func wantApply(t *testing.T, before, diff, expected string) {
	t.Helper()
	if got, err := Apply(before, diff); err != nil || got != expected {
		t.Errorf("Apply(%q, %q) = %q, %v; want %q", before, diff, got, err, expected)
	}
}

func wantError(t *testing.T, before, diff string, kind error, prefix string) {
	t.Helper()
	got, err := Apply(before, diff)
	if !errors.Is(err, kind) || !strings.HasPrefix(err.Error(), prefix) || got != before {
		t.Errorf("Apply(%q, %q) = %q, %v; want %v, %s", before, diff, got, err, kind, prefix)
	}
}

func TestRoundTrip(t *testing.T) {
	x := uint32(7)
	random := func(n uint32) uint32 {
		x = x*1664525 + 1013904223
		return x >> 8 % n
	}
	for i := 0; i < 300; i++ {
		var texts [2]string
		for k := range texts {
			for n := random(20); n > 0; n-- {
				texts[k] += fmt.Sprintf("%d\n", random(5))
			}
			if random(3) == 0 {
				texts[k] = strings.TrimSuffix(texts[k], "\n")
			}
		}
		for context := 0; context < 4; context++ {
			diff := Diff(texts[0], texts[1], context)
			if got, err := Apply(texts[0], diff); err != nil || got != texts[1] {
				t.Fatalf("%q to %q with\n%s: %q, %v", texts[0], texts[1], diff, got, err)
			}
		}
	}
}

func TestFileNamesAndHeadings(t *testing.T) {
	wantApply(t, text("abc"), "--- old\n+++ new\n@@ -2 +2 @@ func main() {\n-b\n+X\n", text("aXc"))
	wantApply(t, text("abc"), "", text("abc"))
	wantApply(t, "a\n\nc\n", "@@ -1,3 +1,2 @@\n-a\n\n c\n", "\nc\n")
}

func TestMovedHunks(t *testing.T) {
	diff := "@@ -3,2 +3,2 @@\n c\n-d\n+X\n"
	wantApply(t, text("abcdef"), diff, text("abcXef"))
	wantApply(t, text("1234abcdef"), diff, text("1234abcXef"))
	wantApply(t, text("cdef"), diff, text("cXef"))
	wantApply(t, text("cd12cd"), diff, text("cX12cd"))
	wantApply(t, text("1cd1cd"), diff, text("1cX1cd"))
	wantApply(t, text("12345cd"), diff, text("12345cX"))
}

func TestTheNextHunkMovesAlong(t *testing.T) {
	diff := "@@ -1 +1 @@\n-a\n+X\n@@ -3 +3 @@\n-c\n+Y\n"
	wantApply(t, text("1a2c3c"), diff, text("1X2Y3c"))
	wantApply(t, text("123a2c"), diff, text("123X2Y"))
	wantError(t, text("cabd"), diff, ErrConflict, "hunk 2: ")
}

func TestInsertions(t *testing.T) {
	wantApply(t, text("ab"), "@@ -1,0 +2 @@\n+X\n", text("aXb"))
	wantApply(t, text("ab"), "@@ -0,0 +1 @@\n+X\n", text("Xab"))
	wantApply(t, text("ab"), "@@ -9,0 +10 @@\n+X\n", text("abX"))
	wantApply(t, "", "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", "a")
}

func TestConflicts(t *testing.T) {
	wantError(t, text("abc"), "@@ -2 +2 @@\n-X\n+Y\n", ErrConflict, "hunk 1: ")
	wantError(t, text("ab"), "@@ -1,3 +1,2 @@\n a\n b\n-c\n", ErrConflict, "hunk 1: ")
	wantError(t, "a\nb", "@@ -2 +2 @@\n-b\n+X\n", ErrConflict, "hunk 1: ")
	wantError(t, text("abc"), "@@ -1 +1 @@\n-a\n+X\n@@ -2 +2 @@\n-c\n+Y\n@@ -1 +1 @@\n-a\n+Z\n", ErrConflict, "hunk 3: ")
}

func TestMalformed(t *testing.T) {
	good := "@@ -1 +1 @@\n-a\n+X\n"
	for n, diff := range []string{
		"@@ -1 @@\n-a\n", "@@ -1,2 +1 @@\n-a\n+X\n", "@@ -1 +1 @@\n-a\n", "@@ -1 +1 @@\n-a\n+X", "@@ -1 +1 @@\n-a\n*X\n",
		"@@ -0 +1 @@\n-a\n+X\n", "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+X\n", "@@ -x +1 @@\n-a\n+X\n",
	} {
		wantError(t, text("abc"), diff, ErrMalformed, "hunk 1: ")
		if n != 3 {
			wantError(t, text("abc"), good+diff, ErrMalformed, "hunk ")
		}
	}
	wantError(t, text("abc"), good+"+more\n", ErrMalformed, "hunk 2: ")
	wantError(t, text("abc"), good+good[:len(good)-3], ErrMalformed, "hunk 2: ")
}
