package task

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestUnits(t *testing.T) {
	for text, expected := range map[string]Units{
		"0": 0, "1": 10000, "0.1": 1000, "-0.0001": -1, "12.3456": 123456, "007": 70000, "999999999999.9999": 9999999999999999, "-5.50": -55000,
	} {
		if got, err := ParseUnits(text); err != nil || got != expected {
			t.Errorf("ParseUnits(%q) = %d, %v; want %d", text, got, err, expected)
		}
	}
	for _, text := range []string{"", "-", ".5", "5.", "1.23456", "1e3", "+1", "1,5", "1234567890123", "0x10", " 1", "Inf", "--1", "1_0"} {
		if got, err := ParseUnits(text); err == nil {
			t.Errorf("ParseUnits(%q) = %d", text, got)
		}
	}
}

func TestUnitsAsText(t *testing.T) {
	for units, expected := range map[Units]string{
		0: "0.00", 10000: "1.00", 5000: "0.50", 1250: "0.125", -1: "-0.0001", -123400: "-12.34", 9999999999999999: "999999999999.9999", 10100: "1.01",
	} {
		if got := units.String(); got != expected {
			t.Errorf("Units(%d) = %s, want %s", int64(units), got, expected)
		}
	}
}

func TestJournal(t *testing.T) {
	got, err := Parse("; remarks\n\n2024-02-29\tGroceries,  at: the corner ; x\n  expenses:food  12.50 EUR;y\n\n  ; z\n\texpenses:house-hold_2 7.5\tEUR\r\n" +
		" assets:cash\n2024-03-01 B\n a 1 X\n b -1 X")
	expected := []Transaction{
		{"2024-02-29", "Groceries,  at: the corner", []Posting{
			{"expenses:food", 125000, "EUR"}, {"expenses:house-hold_2", 75000, "EUR"}, {"assets:cash", -200000, "EUR"}}},
		{"2024-03-01", "B", []Posting{{"a", 10000, "X"}, {"b", -10000, "X"}}},
	}
	if err != nil || !reflect.DeepEqual(got, expected) {
		t.Errorf("Parse = %+v, %v", got, err)
	}
}

func TestNothing(t *testing.T) {
	if got, err := Parse(" \n; only this\n"); err != nil || len(got) != 0 {
		t.Errorf("Parse = %+v, %v", got, err)
	}
}

func TestLeftOutAmounts(t *testing.T) {
	got, err := Parse("2024-01-01 exchange\n a 10 USD\n fees\n b -3 EUR\n c 1 GBP\n c -1 GBP\n")
	expected := []Posting{{"a", 100000, "USD"}, {"fees", 30000, "EUR"}, {"fees", -100000, "USD"}, {"b", -30000, "EUR"}, {"c", 10000, "GBP"}, {"c", -10000, "GBP"}}
	if err != nil || !reflect.DeepEqual(got[0].Postings, expected) {
		t.Errorf("Parse = %+v, %v", got, err)
	}
}

func TestExactSums(t *testing.T) {
	if _, err := Parse("2024-01-01 x\n a 0.1 EUR\n a 0.1 EUR\n a 0.1 EUR\n b -0.3 EUR\n c 999999999999.9999 EUR\n d -999999999999.9999 EUR\n"); err != nil {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	good := "2024-01-01 x\n a 1 EUR\n b\n"
	for _, c := range []struct {
		text string
		line int
	}{
		{" a 1 EUR\n", 1}, {"2024-02-30 x\n a 1 EUR\n b\n", 1}, {"2023-02-29 x\n a 1 EUR\n b\n", 1}, {"24-01-01 x\n a 1 EUR\n b\n", 1},
		{"2024-1-01 x\n a 1 EUR\n b\n", 1}, {"2024-01-01\n a 1 EUR\n b\n", 1}, {"2024-01-01 ; x\n a 1 EUR\n b\n", 1}, {"x\n", 1},
		{"2024-01-01 x\n", 1}, {"2024-01-01 x\n a 0 EUR\n", 1}, {"2024-01-01 x\n a\n", 1}, {"2024-01-01 x\n a 1 EUR\n b -2 EUR\n", 1},
		{"2024-01-01 x\n a 1 EUR\n b -1 USD\n", 1}, {"2024-01-01 x\n a 1 EUR\n b\n c\n", 1}, {"2024-01-01 x\n a\n b 1 EUR\n c\n", 1}, {"2024-01-01 x\n a 1 EUR\n b -1 EUR\n c\n", 1},
		{"2024-01-01 x\n\n a 1 eur\n b\n", 3}, {"2024-01-01 x\n a 1\n b\n", 2}, {"2024-01-01 x\n a EUR\n b\n", 2}, {"2024-01-01 x\n a 1 EUR x\n b\n", 2},
		{"2024-01-01 x\n a 1.00000 EUR\n b\n", 2}, {"2024-01-01 x\n a: 1 EUR\n b\n", 2}, {"2024-01-01 x\n a::b 1 EUR\n b\n", 2},
		{"2024-01-01 x\n \u00e4 1 EUR\n b\n", 2}, {"2024-01-01 x\n a 1 ABCDEFGHIJK\n b\n", 2}, {"2024-01-01 x\n a 1EUR\n b\n", 2},
	} {
		for shift, text := range []string{c.text, "", "", good + c.text} {
			_, err := Parse(text)
			var problem *ParseError
			if text == "" || strings.HasPrefix(c.text, " ") && shift > 0 {
				continue
			}
			if !errors.As(err, &problem) || problem.Line != c.line+shift {
				t.Errorf("Parse(%q): %v, want line %d", text, err, c.line+shift)
			}
		}
	}
}

func TestReport(t *testing.T) {
	transactions := []Transaction{{"", "", []Posting{
		{"assets:bank:giro", 10000, "EUR"}, {"assets:bank", 5000, "EUR"}, {"assets-old", 1, "EUR"}, {"assets:cash", -2500, "USD"},
		{"assets:cash", 7500, "EUR"}, {"equity:a", 3, "X"}, {"equity:b", -3, "X"}, {"assets:Z", 100, "USD"}, {"zero", 1, "A"}, {"zero", -1, "A"},
	}}}
	expected := "assets\t2.25 EUR\nassets\t-0.24 USD\nassets:Z\t0.01 USD\nassets:bank\t1.50 EUR\nassets:bank:giro\t1.00 EUR\n" +
		"assets:cash\t0.75 EUR\nassets:cash\t-0.25 USD\nassets-old\t0.0001 EUR\nequity:a\t0.0003 X\nequity:b\t-0.0003 X\n"
	for i := 0; i < 20; i++ {
		if got := Report(transactions); got != expected {
			t.Fatalf("Report =\n%s\nwant\n%s", got, expected)
		}
	}
	if got := Report(nil); got != "" {
		t.Errorf("Report(nil) = %q", got)
	}
}
