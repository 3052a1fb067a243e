package task

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Units are ten-thousandths.
type Units int64

var number = regexp.MustCompile(`^(-?)([0-9]{1,12})(?:\.([0-9]{1,4}))?$`)

// ParseUnits reads a number as FORMAT.md has it.
func ParseUnits(text string) (Units, error) {
	parts := number.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("not a number: %q", text)
	}
	value, err := strconv.ParseInt(parts[2]+(parts[3] + "0000")[:4], 10, 64)
	if err != nil {
		return 0, err
	}
	if parts[1] == "-" {
		value = -value
	}
	return Units(value), nil
}

// String writes a number as FORMAT.md has it.
func (u Units) String() string {
	sign := ""
	if u < 0 {
		sign = "-"
		u = -u
	}
	decimals := fmt.Sprintf("%04d", u%10000)
	for len(decimals) > 2 && strings.HasSuffix(decimals, "0") {
		decimals = decimals[:len(decimals)-1]
	}
	return fmt.Sprintf("%s%d.%s", sign, u/10000, decimals)
}
