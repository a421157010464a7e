package httpkit

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

// IntQuery returns an integer query parameter from least to most, or fallback if it is absent.
// The fault is InvalidRequest with the name of the parameter.
func IntQuery(r *http.Request, name string, least, most, fallback int) (int, error) {
	query := r.URL.Query()
	if !query.Has(name) {
		return fallback, nil
	}
	text := query.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != text {
		return 0, fault.Invalid(name, "invalid %s, want an integer from %d to %d", name, least, most)
	}
	return n, nil
}

// BoolQuery returns a boolean query parameter; false if it is absent. The fault is
// InvalidRequest with the name of the parameter.
func BoolQuery(r *http.Request, name string) (bool, error) { return BoolOf(r.URL.Query(), name) }

// BoolOf is BoolQuery for parsed query values.
func BoolOf(query url.Values, name string) (bool, error) {
	value := query.Get(name)
	if query.Has(name) && value != "true" && value != "false" {
		return false, fault.Invalid(name, "invalid %s, want true or false", name)
	}
	return value == "true", nil
}

// IdempotencyKey returns the Idempotency-Key header; empty if it is absent. An empty or
// repeated header is an error. The use case checks the length.
func IdempotencyKey(r *http.Request) (string, error) {
	const name = "Idempotency-Key"
	switch values := r.Header.Values(name); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", fault.Invalid(name, "more than one key, want one")
	case values[0] == "":
		return "", fault.Invalid(name, "empty key, want a key or no header")
	default:
		return values[0], nil
	}
}

// SelectorQuery returns the selector of labels in the query parameter label; nil if it is absent.
// The fault is InvalidRequest with its name.
func SelectorQuery(query url.Values) (label.Selector, error) {
	const name = "label"
	if query.Has(name) && query.Get(name) == "" {
		return nil, fault.Invalid(name, "empty value, want a selector or no parameter")
	}
	selector, err := label.Parse(query.Get(name))
	if err != nil {
		return nil, fault.Invalid(name, "%v", err)
	}
	return selector, nil
}
