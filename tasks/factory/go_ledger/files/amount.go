package task

import (
	"fmt"
	"strconv"
)

// Units are ten-thousandths.
type Units int64

// ParseUnits reads a number as FORMAT.md has it.
func ParseUnits(text string) (Units, error) {
	value, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return 0, fmt.Errorf("not a number: %q", text)
	}
	return Units(value * 10000), nil
}

// String writes a number as FORMAT.md has it.
func (u Units) String() string {
	return fmt.Sprintf("%.2f", float64(u)/10000)
}
