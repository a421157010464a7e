package guard

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Limits of the headers of one request.
const (
	MaxHeaders     = 20
	MaxHeaderBytes = 8 << 10
)

var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = regexp.MustCompile(`^([!-~]([ -~]*[!-~])?)?$`)
)

// reserved are the headers that Sortie or the connection sets, and those that services
// of a host's own network take for a proof of where a request comes from. A hyphen at
// the end means every header that begins so.
var reserved = []string{
	"host", "content-", "transfer-encoding", "connection", "keep-alive", "proxy-", "te", "trailer", "upgrade", "expect",
	"accept-encoding", "user-agent", "x-orchestrator-", "webhook-",
	"forwarded", "x-forwarded-", "metadata", "metadata-flavor", "x-google-metadata-request", "x-aws-ec2-metadata-",
}

// CheckHeaders returns the problems of a user's headers. The error contains names and
// no values.
func CheckHeaders(headers map[string]string) error {
	var problems []error
	wrong := func(name, problem string) { problems = append(problems, fmt.Errorf("%q: %s", name, problem)) }
	seen, size := map[string]bool{}, 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, lower := headers[name], strings.ToLower(name)
		size += len(name) + len(value)
		switch {
		case !headerName.MatchString(name):
			wrong(name, "malformed name of a header, want letters, digits and hyphens")
		case !headerValue.MatchString(value):
			wrong(name, "malformed value, want printable ASCII without spaces at its ends")
		case seen[lower]:
			wrong(name, "header is given twice")
		case slices.ContainsFunc(reserved, func(r string) bool {
			return lower == r || strings.HasSuffix(r, "-") && strings.HasPrefix(lower, r)
		}):
			wrong(name, "reserved header, want another one")
		}
		seen[lower] = true
	}
	if len(headers) > MaxHeaders || size > MaxHeaderBytes {
		problems = append(problems, fmt.Errorf("%d headers of %d bytes, want at most %d of %d bytes", len(headers), size, MaxHeaders, MaxHeaderBytes))
	}
	return errors.Join(problems...)
}
