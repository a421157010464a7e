package httpkit

import (
	"math"
	"testing"
)

func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-1", "bytes=-5", "bytes=5-", "bytes=9-2", "bytes=-", "bytes= 1-2 ", "bytes=1-2,3-4", "bytes=99999999999999999999-"} {
		f.Add(seed, int64(10))
	}
	f.Add("bytes=0-", int64(0))
	f.Fuzz(func(t *testing.T, header string, size int64) {
		size &= math.MaxInt64 // an output has no negative size
		span, want := parseRange(header, size)
		if want != wantPart {
			return
		}
		if span.Offset < 0 || span.Length < 1 || span.Offset > size-span.Length {
			t.Errorf("got part %+v outside of %d bytes, want it within the output", span, size)
		}
	})
}
