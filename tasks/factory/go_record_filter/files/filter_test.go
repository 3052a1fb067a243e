package task

import (
	"errors"
	"strings"
	"testing"
)

var record = map[string]string{
	"level": "3", "host": "db-1", "user": "", "note": "a \"b\" \\ c\n", "size": " 12.5 ", "city": "Z\u00fcrich", "http.status": "404",
	"word": "ten", "nan": "NaN", "big": "9", "neg": "-2",
}

func match(t *testing.T, source string) bool {
	t.Helper()
	filter, err := Parse(source)
	if err != nil {
		t.Fatalf("Parse(%q): %v", source, err)
	}
	return filter.Match(record)
}

func wantAll(t *testing.T, expected bool, sources ...string) {
	t.Helper()
	for _, source := range sources {
		if match(t, source) != expected {
			t.Errorf("%s: want %v", source, expected)
		}
	}
}

func TestNumbers(t *testing.T) {
	wantAll(t, true, `level = 3`, `level=3.0`, `level >= 3`, `level <= 3`, `level != 4`, `level > 2.5`, `level < 10`, `size = 12.5`,
		`neg = -2`, `neg < -1.5`, `big < 10`, `http.status >= 400`)
	wantAll(t, false, `level != 3`, `level > 3`, `level < 3`, `level = 4`, `level >= 3.1`, `level <= 2`)
}

func TestNotANumber(t *testing.T) {
	wantAll(t, false, `word = 10`, `word != 10`, `word < 10`, `word >= 10`, `nan = 1`, `nan != 1`, `nan < 1`, `user = 0`)
	wantAll(t, true, `not word = 10`, `not nan > 1`)
}

func TestTexts(t *testing.T) {
	wantAll(t, true, `host = "db-1"`, `host != "db-2"`, `host < "db-10"`, `big > "10"`, `user = ""`, `level = "3"`, `host >= "db-1"`)
	wantAll(t, false, `level = "3.0"`, `host = "DB-1"`, `host > "db-1"`, `host <= "db-0"`)
}

func TestEscapes(t *testing.T) {
	wantAll(t, true, `note = "a \"b\" \\ c\n"`, `note ~ "*\\*"`, `note != "\t"`)
}

func TestMissingNames(t *testing.T) {
	wantAll(t, false, `x = 1`, `x != 1`, `x = "a"`, `x != "a"`, `x ~ "*"`, `x in (1)`, `x not in (1)`, `x exists`)
	wantAll(t, true, `not x = 1`, `not x not in ("a")`, `user exists`, `not x exists`)
}

func TestIn(t *testing.T) {
	wantAll(t, true, `level in (1, 2, 3)`, `level in ("x", 3)`, `host not in ("a", "b")`, `word not in (10)`, `level in("3")`)
	wantAll(t, false, `level in (1, 2)`, `level not in (3.0)`, `level in ("3.0")`)
}

func TestPatterns(t *testing.T) {
	wantAll(t, true, `host ~ "db-*"`, `host ~ "*"`, `host ~ "db-1"`, `host ~ "??-?"`, `host ~ "*1"`, `host ~ "*b*"`, `user ~ ""`, `user ~ "*"`,
		`city ~ "Z?rich"`, `city ~ "Z*ch"`, `host ~ "db-1*"`, `host ~ "**1**"`)
	wantAll(t, false, `host ~ "db"`, `host ~ "b-1"`, `host ~ "db-?1"`, `host ~ "db-1?"`, `city ~ "Z??rich"`, `user ~ "?"`, `host ~ ""`)
}

func TestPatternsAreQuick(t *testing.T) {
	filter, err := Parse(`x ~ "` + strings.Repeat("*a", 30) + `*b"`)
	if err != nil {
		t.Fatal(err)
	}
	if filter.Match(map[string]string{"x": strings.Repeat("a", 2000)}) {
		t.Error("there is no b")
	}
	if !filter.Match(map[string]string{"x": strings.Repeat("a", 2000) + "b"}) {
		t.Error("there is a b")
	}
}

func TestPrecedence(t *testing.T) {
	wantAll(t, true, `level = 3 or level = 3 and level = 4`, `(level = 4 and level = 3) or host exists`, `not level = 4 and level = 3`,
		`level = 4 or level = 5 or level = 3`, `not not level = 3`, `not (level = 3 and level = 4)`)
	wantAll(t, false, `(level = 3 or level = 3) and level = 4`, `not level = 3 or level = 4`, `not (level = 3 or level = 4)`,
		`level = 3 and level = 4 or level = 5`, `not level = 3 and level = 3`)
}

func TestManyOperands(t *testing.T) {
	wantAll(t, true, strings.Repeat("level = 4 or ", 20000)+"level = 3")
}

func TestNames(t *testing.T) {
	filter, err := Parse(`a-b.c_d1 = "x" and In = 1 and nothing exists and AND = 2`)
	if err != nil {
		t.Fatal(err)
	}
	if !filter.Match(map[string]string{"a-b.c_d1": "x", "In": "1", "nothing": "", "AND": "2"}) {
		t.Error("all are names")
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		source string
		offset int
	}{
		{"", 0}, {"  ", 2}, {"level", 5}, {"level =", 7}, {"level = =", 8}, {"level 3", 6}, {"3 = level", 0}, {`"a" = 1`, 0},
		{"level = 3 level = 4", 10}, {"level = 3 and", 13}, {"level = 3 and or", 14}, {"and = 1", 0}, {"exists exists", 0},
		{"(level = 3", 0}, {"level = 1 and ((level = 3)", 14}, {"(level = 3 4", 11}, {"level = 3)", 9}, {"()", 1}, {"not", 3},
		{"level in 3", 9}, {"level in ()", 10}, {"level in (1", 9}, {"level in (1 2)", 12}, {"level in (1,)", 12}, {"level not 3", 10},
		{"level not in", 12}, {"level ~ 3", 8}, {"level ~", 7}, {"level ! 3", 6}, {"level = $", 8}, {"level = 3 $", 10}, {"level = -", 8},
		{`a = "b`, 4}, {"a = \"b\n\"", 4}, {`a = "b\q"`, 6}, {`a = "b\`, 4}, {"level = host", 8}, {"level ( 3", 6}, {"in = 1", 0},
		{strings.Repeat("(", 101), 100}, {strings.Repeat("not ", 101) + "a exists", 400},
	} {
		_, err := Parse(c.source)
		var problem *SyntaxError
		if !errors.As(err, &problem) {
			t.Errorf("Parse(%q): %v is no *SyntaxError", c.source, err)
		} else if problem.Offset != c.offset {
			t.Errorf("Parse(%q): offset %d, want %d (%s)", c.source, problem.Offset, c.offset, problem.Text)
		}
	}
}

func TestDepth(t *testing.T) {
	wantAll(t, true, strings.Repeat("(", 50)+strings.Repeat("not ", 50)+"level = 3"+strings.Repeat(")", 50),
		strings.Repeat("(level = 3) and ", 300)+"level = 3")
}
