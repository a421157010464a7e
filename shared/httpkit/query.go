package httpkit

import (
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/shared/fault"
)

// IntQuery reads a whole number from the query, within least and most; fallback
// where the parameter is absent. InvalidRequest names it.
func IntQuery(r *http.Request, name string, least, most, fallback int) (int, error) {
	query := r.URL.Query()
	if !query.Has(name) {
		return fallback, nil
	}
	text := query.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != text {
		return 0, fault.Invalid(name, "%s is a whole number, %d to %d", name, least, most)
	}
	return n, nil
}

// IdempotencyKey reads the header of that name, which may be absent but not
// empty. Its length is the use case's to check.
func IdempotencyKey(r *http.Request) (string, error) {
	const name = "Idempotency-Key"
	switch values := r.Header.Values(name); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", fault.Invalid(name, "there is more than one key")
	case values[0] == "":
		return "", fault.Invalid(name, "the key is empty; leave the header out instead")
	default:
		return values[0], nil
	}
}
