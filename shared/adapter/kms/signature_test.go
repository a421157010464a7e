package kms

import (
	"bytes"
	"encoding/asn1"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func der(t rapid.TB, r, s *big.Int) []byte {
	t.Helper()
	text, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSignatureIsTwoHalves covers R and S of all sizes.
func TestSignatureIsTwoHalves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) *big.Int {
			n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 1, half).Draw(t, name))
			return n.Add(n, big.NewInt(1)).Rsh(n, uint(n.BitLen()/(8*half+1))) // 1 to 2^256 - 1
		}
		r, s := number("r"), number("s")
		signature, err := joined(der(t, r, s))
		if err != nil || len(signature) != 2*half {
			t.Fatalf("got %d bytes (%v)", len(signature), err)
		}
		if new(big.Int).SetBytes(signature[:half]).Cmp(r) != 0 || new(big.Int).SetBytes(signature[half:]).Cmp(s) != 0 {
			t.Fatalf("got %x, want %x and %x", signature, r, s)
		}
	})
}

func TestMalformedSignature(t *testing.T) {
	t.Parallel()
	one, large := big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 8*half)
	for name, text := range map[string][]byte{
		"nothing": nil, "zero": der(t, one, new(big.Int)), "negative": der(t, big.NewInt(-1), one),
		"too large": der(t, large, one), "trailing data": append(der(t, one, one), 0), "cut": der(t, one, one)[:5],
		"two halves": bytes.Repeat([]byte{1}, 2*half),
	} {
		if signature, err := joined(text); err == nil {
			t.Errorf("%s: got %x, want an error", name, signature)
		}
	}
}

func FuzzJoined(f *testing.F) {
	f.Add(der(f, big.NewInt(1), big.NewInt(2)))
	f.Add([]byte{0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x80})
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, text []byte) {
		signature, err := joined(text)
		if err != nil {
			return
		}
		r, s := new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])
		if again := der(t, r, s); !bytes.Equal(again, text) {
			t.Errorf("%x: got %x, encoded as %x", text, signature, again)
		}
	})
}
