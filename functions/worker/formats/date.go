package formats

import "time"

// w3cdtf lists the forms of W3CDTF (the W3C's note on date and time formats).
var w3cdtf = []string{
	"2006", "2006-01", time.DateOnly,
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.999999999Z07:00",
}

// IsW3CDTF reports whether text is a valid date, or date and time, in W3CDTF.
func IsW3CDTF(text string) bool {
	for _, form := range w3cdtf {
		if _, err := time.Parse(form, text); err == nil {
			return true
		}
	}
	return false
}

// Year returns the four digits of the year of a date in W3CDTF; "" for any other text.
func Year(text string) string {
	if !IsW3CDTF(text) {
		return ""
	}
	return text[:4]
}

// Encoding returns the value of the MODS attribute for a date: w3cdtf or "".
func Encoding(text string) string {
	if IsW3CDTF(text) {
		return "w3cdtf"
	}
	return ""
}
