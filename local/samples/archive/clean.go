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

// Clean prepares text for display. It resolves character references, collapses white space, and
// removes control characters and invalid UTF-8. A named reference that differs from &quot; in
// one letter, such as the typing error &wuot;, becomes a quotation mark. Other unknown names
// remain as text.
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

// CutPlaceholder removes the sentence that replaces a missing list of topics.
func CutPlaceholder(text string) string { return placeholder.ReplaceAllString(text, "") }
