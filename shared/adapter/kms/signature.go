package kms

import (
	"encoding/asn1"
	"errors"
	"math/big"
)

// half is the size of R and of S on P-256, in bytes.
const half = 32

// joined converts the DER of KMS (RFC 3279 §2.2.3) to R and S, 32 bytes each,
// as JWS requires (RFC 7518 §3.4).
func joined(der []byte) ([]byte, error) {
	var numbers []*big.Int
	rest, err := asn1.Unmarshal(der, &numbers)
	if err != nil || len(rest) > 0 || len(numbers) != 2 {
		return nil, errors.New("the signature is no sequence of two integers in DER")
	}
	signature := make([]byte, 2*half)
	for i, n := range numbers {
		if n.Sign() <= 0 || n.BitLen() > 8*half {
			return nil, errors.New("the signature has an integer that is not on P-256")
		}
		n.FillBytes(signature[i*half : (i+1)*half])
	}
	return signature, nil
}
