package download

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fileNameLimit is how long a file name in a header is, in bytes; most file
// systems take 255, and clients add to it.
const fileNameLimit = 200

// disposition is the Content-Disposition for a file name that a worker told
// (RFC 6266). The plain form is ASCII in quotes; a name that has more also
// stands there in full, as filename*.
func disposition(name, taskID string) string {
	name = cleanName(name)
	if name == "" {
		name = taskID + ".xml"
	}
	plain := strings.Map(func(c rune) rune {
		if c > unicode.MaxASCII || c == '%' {
			return '_'
		}
		return c
	}, name)
	text := `attachment; filename="` + plain + `"`
	if plain != name {
		text += "; filename*=UTF-8''" + percent(name)
	}
	return text
}

// cleanName leaves of a name what is safe in a header and as a file: its last
// part, without what is not printable, quotes, and dots at its beginning.
func cleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(c rune) rune {
		switch {
		case c == '"', c == utf8.RuneError, !unicode.IsPrint(c):
			return -1
		case strings.ContainsRune(`<>:|?*;`, c):
			return '_'
		}
		return c
	}, name)
	name = strings.Trim(strings.TrimLeft(name, ". "), " ")
	if len(name) <= fileNameLimit {
		return name
	}
	end := fileNameLimit
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// percent is the ext-value of RFC 8187.
func percent(name string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}
