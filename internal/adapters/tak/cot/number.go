package cot

import (
	"math"
	"strconv"
	"strings"
)

// Number is a decimal number as text: no plus, no exponent, no superfluous zeros. A text that is not a number stays as it was.
type Number string

// Unknown stands in CoT for an unknown height or error.
const Unknown Number = "9999999"

// NumberOf is the shortest text of a number.
func NumberOf(f float64) Number { return Number(strconv.FormatFloat(f, 'f', -1, 64)).clean() }

// Rounded is a number with at most so many digits behind the point.
func Rounded(f float64, digits int) Number {
	return Number(strconv.FormatFloat(f, 'f', digits, 64)).clean()
}

// Float is the number's value; false if the text is not a number or is infinite.
func (n Number) Float() (float64, bool) {
	if n == "" || len(n) > 64 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// unknown is the number, or Unknown if the text is NaN as Java, C or Windows write it.
func (n Number) unknown() Number {
	t := strings.ToLower(strings.TrimLeft(string(n), "+-"))
	for _, none := range []string{"nan", "1.#qnan", "1.#snan", "1.#ind"} {
		if rest, ok := strings.CutPrefix(t, none); ok && (rest == "" || strings.Trim(rest, "0") == "" || rest[0] == '(') {
			return Unknown
		}
	}
	return n
}

// clean brings a number into its one form.
func (n Number) clean() Number {
	f, ok := n.Float()
	if !ok {
		return n
	}
	t := string(n)
	if strings.ContainsAny(t, "eExXpP_ni") {
		t = strconv.FormatFloat(f, 'f', -1, 64)
	}
	t = strings.TrimPrefix(t, "+")
	minus := strings.HasPrefix(t, "-")
	t = strings.TrimPrefix(t, "-")
	if strings.Contains(t, ".") {
		t = strings.TrimSuffix(strings.TrimRight(t, "0"), ".")
	}
	t = strings.TrimLeft(t, "0")
	if t == "" || t[0] == '.' {
		t = "0" + t
	}
	if minus && t != "0" {
		t = "-" + t
	}
	return Number(t)
}
