package platform

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// nameLimit is the maximum length of a DNS-1123 label, which Kubernetes objects have as names.
const nameLimit = 63

// ResourceName returns the name of a part of a run in other systems: the machine of an attempt ("a",
// 2), or an execution ("s", 1). It is a DNS-1123 label (a-z, 0-9 and '-', at most 63). It
// starts with the readable part of the run's id and contains 60 bits of a hash of tenant and
// id. So it differs between tenants, ids and parts.
func ResourceName(tenant, id, part string, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", tenant, id))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:12])
	tail := fmt.Sprintf("-%s-%s%d", hash, part, number)
	readable := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, id)
	readable = strings.Trim(readable[:min(len(readable), nameLimit-len(tail))], "-")
	return strings.Trim(readable+tail, "-")
}
