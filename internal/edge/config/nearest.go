package config

import (
	"fmt"
	"slices"
)

// Nearest suggests the candidate that is at most two typing errors away from got, as "; is NAME meant?". It is empty if none is
// so near: two errors in a word of three letters leave nothing of it, unless the letters have changed places.
func Nearest(got string, candidates []string) string {
	best, dist := "", 3
	for _, c := range candidates {
		if d := distance(got, c); c != "" && d < dist && (d < 2 || len(got) > 3 || sameLetters(got, c)) {
			best, dist = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; is %s meant?", best)
}

// sameLetters says that two words differ only in the order of their octets.
func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return string(x) == string(y)
}

// distance counts the octets to insert, delete or change between a and b (Levenshtein), a cut to 64 octets.
func distance(a, b string) int {
	a = a[:min(len(a), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
