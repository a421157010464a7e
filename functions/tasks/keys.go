package tasks

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Keys are the published keys.
type Keys struct {
	Tokens port.Signer
	Events port.EventKeys
}

// keySet serves the public keys for tokens and for events. The cache time is shorter than the
// overlap of two keys in a rotation.
func keySet(of Keys, w http.ResponseWriter, r *http.Request) error {
	keys, err := of.Tokens.Keys(r.Context())
	if err != nil {
		return fmt.Errorf("cannot read the verification keys: %w", err)
	}
	set := contract.KeySet{Keys: make([]json.RawMessage, 0, len(keys))}
	for _, key := range keys {
		// The uncompressed point: 4, then the coordinates, 32 bytes each.
		point, err := key.Public.Bytes()
		if err != nil {
			return fmt.Errorf("cannot encode key %s: %w", key.ID, err)
		}
		const half = 32
		document, err := json.Marshal(contract.Key{
			KeyType: "EC", Curve: "P-256", KeyID: key.ID, Use: "sig", Algorithm: "ES256",
			X: base64.RawURLEncoding.EncodeToString(point[1 : 1+half]),
			Y: base64.RawURLEncoding.EncodeToString(point[1+half:]),
		})
		if err != nil {
			return fmt.Errorf("cannot encode key %s: %w", key.ID, err)
		}
		set.Keys = append(set.Keys, document)
	}
	signing, err := of.Events.Published(r.Context())
	if err != nil {
		return fmt.Errorf("cannot read the keys of events: %w", err)
	}
	set.Keys = append(set.Keys, signing...)
	w.Header().Set("Cache-Control", "public, max-age=300")
	return httpkit.WriteJSON(w, http.StatusOK, set)
}
