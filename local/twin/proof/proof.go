package proof

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
)

// Path is the path of the challenge. Its query has the nonce and the address.
const Path = "/.well-known/sortie-proof"

// KeySize is the size of a key and of a nonce in bytes.
const KeySize = 32

// answer is the body of the server's response.
type answer struct {
	// Proof is the MAC in hexadecimal.
	Proof string `json:"proof"`
}

// sum returns the MAC of a challenge: the HMAC-SHA256 of "sortie-proof-v1", the nonce and the
// address, one on each line.
func sum(key []byte, nonce, address string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("sortie-proof-v1\n" + nonce + "\n" + address))
	return mac.Sum(nil)
}

// Handler answers challenges with the key and passes all other requests to next.
func Handler(key []byte, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			next.ServeHTTP(w, r)
			return
		}
		query := r.URL.Query()
		nonce, address := query.Get("nonce"), query.Get("address")
		if raw, err := hex.DecodeString(nonce); err != nil || len(raw) != KeySize || r.Method != http.MethodGet {
			http.Error(w, "want GET with a nonce of 32 bytes in hexadecimal", http.StatusBadRequest)
			return
		}
		own, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if own == nil || address != canonical(own) {
			http.Error(w, "want the address at which the connection has reached this server", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(answer{hex.EncodeToString(sum(key, nonce, address))}) // the client may have left
	})
}

// canonical returns the address in one form: an IPv4 address is never written as IPv6. It
// returns "" for an address without a port.
func canonical(addr net.Addr) string {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}
