package redact

import (
	"bytes"
	"regexp"
	"strings"
)

// Find returns the start and the end of each secret in a text.
func (r *Redactor) Find(text []byte) (places [][2]int) {
	for _, s := range r.find(text) {
		places = append(places, [2]int{s.start, s.end})
	}
	return places
}

// FindByExpression is Find with one regular expression of all values and forms.
func (r *Redactor) FindByExpression(text []byte) (places [][2]int) {
	var all []string
	for _, value := range r.values {
		all = append(all, regexp.QuoteMeta(value))
	}
	all = append(all, jwtForm, presignedForm, bucketForm)
	for _, at := range regexp.MustCompile(strings.Join(all, "|")).FindAllIndex(text, -1) {
		if s := text[at[0]:at[1]]; !bytes.HasPrefix(s, []byte("eyJ")) || r.issued(s) {
			places = append(places, [2]int{at[0], at[1]})
		}
	}
	return places
}
