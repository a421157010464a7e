package tasks

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/port"
)

// keySet serves the public keys that verify workers' tokens. The cache time is
// shorter than the overlap of two keys in a rotation.
func keySet(signer port.Signer, w http.ResponseWriter, r *http.Request) error {
	keys, err := signer.Keys(r.Context())
	if err != nil {
		return fmt.Errorf("cannot read the verification keys: %w", err)
	}
	set := contract.KeySet{Keys: make([]contract.Key, 0, len(keys))}
	for _, key := range keys {
		// The uncompressed point: 4, then the coordinates, 32 bytes each.
		point, err := key.Public.Bytes()
		if err != nil {
			return fmt.Errorf("cannot encode key %s: %w", key.ID, err)
		}
		const half = 32
		set.Keys = append(set.Keys, contract.Key{
			KeyType: "EC", Curve: "P-256", KeyID: key.ID, Use: "sig", Algorithm: "ES256",
			X: base64.RawURLEncoding.EncodeToString(point[1 : 1+half]),
			Y: base64.RawURLEncoding.EncodeToString(point[1+half:]),
		})
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	return httpkit.WriteJSON(w, http.StatusOK, set)
}
