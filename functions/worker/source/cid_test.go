package source

import (
	"crypto/sha256"
	"testing"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	const empty = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
	for _, row := range []struct {
		name, cid string
		body      string
		checked   bool
		want      bool
	}{
		{"raw sha2-256 of nothing", empty, "", true, true},
		{"of something else", empty, "x", true, false},
		{"CIDv0", "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG", "x", false, true},
		{"dag-pb", "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", "x", false, true},
		{"cut short", empty[:40], "x", false, true},
		{"capitals", "B" + empty[1:], "x", false, true},
		{"no base 32", "b!!!", "x", false, true},
		{"nothing", "", "x", false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sum := sha256.Sum256([]byte(row.body))
			if _, checked := digestOf(row.cid); checked != row.checked {
				t.Errorf("checked: %v", checked)
			}
			if got := matches(row.cid, sum[:]); got != row.want {
				t.Errorf("matches = %v", got)
			}
		})
	}
}

func FuzzDigestOf(f *testing.F) {
	f.Add("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku")
	f.Add("b")
	f.Fuzz(func(t *testing.T, cid string) {
		if sum, ok := digestOf(cid); ok && len(sum) != sha256.Size {
			t.Errorf("a digest of %d bytes", len(sum))
		}
	})
}
