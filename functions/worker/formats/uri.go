package formats

import (
	"regexp"
	"strings"
)

// RFC 3986, appendix B, with a scheme that is one.
var (
	uriParts  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/?#]*)?([^?#]*)(\?[^#]*)?(#.*)?$`)
	authority = regexp.MustCompile(`^//([^@\[\]:]*(:[^@\[\]]*)?@)?(\[[0-9A-Fa-f:.]+\]|[^@:\[\]]*)(:[0-9]{0,5})?$`)
)

const (
	unreserved = "-._~"
	subDelims  = "!$&'()*+,;="
)

// URI converts any text to a valid xs:anyURI (and RFC 3986 reference). It returns valid text
// unchanged, percent-encodes forbidden characters, and makes a relative reference of text that
// cannot be a URI. Blank text becomes "".
func URI(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	// The expression does not match line ends; they are encoded below.
	flat := strings.NewReplacer("\r", "%0D", "\n", "%0A").Replace(text)
	parts := uriParts.FindStringSubmatch(flat)
	scheme, host, path, query, fragment := parts[1], parts[2], parts[3], parts[4], parts[5]

	var out strings.Builder
	out.WriteString(scheme)
	switch {
	case host == "":
	case authority.MatchString(host):
		encode(&out, host, subDelims+":@/[]")
	default:
		out.WriteString("//")
		encode(&out, host[2:], subDelims)
	}
	allowed := subDelims + ":@/"
	if scheme == "" && host == "" {
		// The first segment of a relative reference has no colon.
		first, rest, more := strings.Cut(path, "/")
		encode(&out, first, subDelims+"@")
		if path = rest; more {
			path = "/" + rest
		}
	}
	encode(&out, path, allowed)
	if query != "" {
		out.WriteByte('?')
		encode(&out, query[1:], allowed+"?")
	}
	if fragment != "" {
		out.WriteByte('#')
		encode(&out, fragment[1:], allowed+"?")
	}
	return out.String()
}

func encode(out *strings.Builder, text, allowed string) {
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		c := text[i]
		plain := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			strings.IndexByte(unreserved, c) >= 0 || strings.IndexByte(allowed, c) >= 0 ||
			c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2])
		if plain {
			out.WriteByte(c)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
}
