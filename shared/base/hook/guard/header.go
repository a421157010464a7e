package guard

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// The maximum number and size of the headers of one request.
const (
	MaxHeaders     = 50
	MaxHeaderBytes = 8 << 10
)

// tokenCharacters are the characters of a token (RFC 9110, 5.6.2).
const tokenCharacters = limit.Letters + limit.Digits + "!#$%&'*+.^_`|~-"

var (
	headerName  = limit.Form{First: tokenCharacters, Rest: tokenCharacters, Most: 128}
	headerValue = regexp.MustCompile(`^([!-~]([ -~]*[!-~])?)?$`)
)

// reserved are the headers that Sortie or the connection sets, and those that services in a
// host's own network accept as proof of origin. A hyphen at the end means every header with
// that prefix.
var reserved = []string{
	"host", "content-", "transfer-encoding", "connection", "keep-alive", "proxy-", "te", "trailer", "upgrade", "expect",
	"accept-encoding", "user-agent", "x-orchestrator-", "webhook-",
	"forwarded", "x-forwarded-", "metadata", "metadata-flavor", "x-google-metadata-request", "x-aws-ec2-metadata-",
}

// CheckHeaders returns the problems of a user's headers, by header name; problems of all
// headers together have the empty name. It is empty for valid headers. No problem contains a
// value.
func CheckHeaders(headers map[string]string) map[string]string {
	problems, seen, size := map[string]string{}, map[string]bool{}, 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		switch {
		case !headerName.Matches(name):
			problems[name] = "malformed name of a header, want letters, digits and hyphens"
		case !headerValue.MatchString(headers[name]):
			problems[name] = "malformed value of a header, want printable ASCII without spaces at its ends"
		case seen[lower]:
			problems[name] = "header is given twice"
		case isReserved(lower):
			problems[name] = "reserved header, want another one"
		}
		seen[lower] = true
		size += len(name) + len(headers[name])
	}
	if len(headers) > MaxHeaders || size > MaxHeaderBytes {
		problems[""] = fmt.Sprintf("%d headers of %d bytes, want at most %d of %d bytes", len(headers), size, MaxHeaders, MaxHeaderBytes)
	}
	return problems
}

func isReserved(lower string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool {
		return lower == r || strings.HasSuffix(r, "-") && strings.HasPrefix(lower, r)
	})
}
