package httpkit

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Accepted returns the offered content type that the client prefers: the one with the highest
// weight in Accept. Of equal weights, and without Accept, it is the first offer. The fault is
// 406 if the client accepts no offer.
func Accepted(r *http.Request, offers ...string) (string, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return offers[0], nil
	}
	best, chosen := 0.0, ""
	for _, offer := range offers {
		if weight := weightOf(header, offer); weight > best {
			best, chosen = weight, offer
		}
	}
	if chosen == "" {
		return "", onlyHTTP(codeAccept, "Accept", "unacceptable content types, want one of "+strings.Join(offers, ", "))
	}
	return chosen, nil
}

// weightOf returns the weight of a content type in an Accept header: that of the most specific
// matching range (RFC 9110, §12.5.1), or 0.
func weightOf(header, offer string) (weight float64) {
	kind, _, _ := strings.Cut(offer, "/")
	precision := 0
	for each := range strings.SplitSeq(header, ",") {
		accepted, parameters, err := mime.ParseMediaType(each)
		at := 1 + slices.Index([]string{"*/*", kind + "/*", offer}, accepted)
		if err != nil || at <= precision {
			continue
		}
		precision, weight = at, 1
		if text, ok := parameters["q"]; ok {
			if weight, err = strconv.ParseFloat(text, 64); err != nil || weight < 0 || weight > 1 {
				weight = 0
			}
		}
	}
	return weight
}
