package archive

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	reference   = regexp.MustCompile(`&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
	placeholder = regexp.MustCompile(`(?i)\s*Topics of conversation included:?[\s.…]*$`)
)

// Clean makes text fit to be shown: character references inside it are
// resolved, white space is single and inner, control characters and bytes that
// are no UTF-8 are gone. Where a named reference is one letter away from &quot;,
// a mistyped quotation mark (&wuot;), it becomes one; any other name that nobody
// knows is text and stays.
func Clean(text string) string {
	if strings.Contains(text, "&") {
		text = reference.ReplaceAllStringFunc(text, resolve)
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), r == '\ufeff', r == '\ufffe', r == '\uffff':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}

func resolve(ref string) string {
	if s := html.UnescapeString(ref); s != ref {
		return s
	}
	if name := ref[1 : len(ref)-1]; len(name) == len("quot") {
		different := 0
		for i := range name {
			if name[i] != "quot"[i] {
				different++
			}
		}
		if different == 1 {
			return `"`
		}
	}
	return ref
}

// CutPlaceholder takes off the sentence that stands where the topics of a
// conversation were to be listed, and were not.
func CutPlaceholder(text string) string { return placeholder.ReplaceAllString(text, "") }
