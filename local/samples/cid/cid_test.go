package cid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/samples/cid"
)

func TestKnownIdentifiers(t *testing.T) {
	t.Parallel()
	// IPFS uses this identifier for the empty block.
	if got := cid.Raw(nil); got != "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku" {
		t.Errorf("Raw(nil) = %s", got)
	}
	// The IPLD documentation uses this identifier for the empty DAG-CBOR map.
	if got := cid.DagCBOR([]byte{0xa0}); got != "bafyreigbtj4x7ip5legnfznufuopl4sg4knzc2cof6duas4b3q2fy6swua" {
		t.Errorf("DagCBOR({}) = %s", got)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	good := string(cid.Raw([]byte("hello")))
	tests := map[string]struct {
		text string
		ok   bool
	}{
		"a raw block":           {good, true},
		"a dag-cbor node":       {string(cid.DagCBOR([]byte{0xa0})), true},
		"empty":                 {"", false},
		"version 0":             {"QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG", false},
		"upper case":            {strings.ToUpper(good), false},
		"cut":                   {good[:len(good)-1], false},
		"too long":              {good + "aa", false},
		"dag-pb":                {"bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", false},
		"stray bits at the end": {good[:len(good)-1] + "z", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, err := cid.Parse(tt.text)
			if tt.ok && (err != nil || string(c) != tt.text) {
				t.Errorf("Parse(%q) = %q, %v", tt.text, c, err)
			}
			if !tt.ok && !errors.Is(err, cid.ErrInvalid) {
				t.Errorf("Parse(%q) = %q, %v, want ErrInvalid", tt.text, c, err)
			}
			if got := cid.CID(tt.text).Bytes(); (got != nil) != tt.ok {
				t.Errorf("Bytes() = %v", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(cid.Raw(nil)))
	f.Add("bafy")
	f.Add("b")
	f.Fuzz(func(t *testing.T, text string) {
		c, d, err := cid.Parse(text)
		if err != nil {
			return
		}
		if string(c) != text {
			t.Fatalf("Parse(%q) gave %q", text, c)
		}
		if again, d2, err := cid.Parse(string(c)); err != nil || again != c || d2 != d {
			t.Fatalf("not stable: %q", text)
		}
	})
}
