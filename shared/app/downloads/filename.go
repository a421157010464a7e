package downloads

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fileNameLimit is the maximum length of a file name in a header, in bytes. Most file systems
// allow 255, and clients add to the name.
const fileNameLimit = 200

// disposition returns the Content-Disposition for a worker's file name (RFC
// 6266). The plain form is quoted ASCII; other names are also sent in full as
// filename*.
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

// cleanName returns a file name that is safe in a header and in a file system:
// the last part of the path without unprintable characters, quotes and leading
// dots.
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

// percent returns a name in percent-encoding, as in an ext-value of RFC 8187.
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
