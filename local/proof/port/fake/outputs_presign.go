package fake

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// host is the host of the presigned URLs.
const host = "bucket.example"

// PresignGet implements port.Outputs.
func (o *Outputs) PresignGet(_ context.Context, key, disposition, contentType string, ttl time.Duration) (string, error) {
	return o.presign(http.MethodGet, key, ttl, url.Values{"type": {contentType}, "disposition": {disposition}})
}

// PresignPut implements port.Outputs.
func (o *Outputs) PresignPut(_ context.Context, key, contentType string, ttl time.Duration) (string, error) {
	return o.presign(http.MethodPut, key, ttl, url.Values{"type": {contentType}})
}

func (o *Outputs) presign(method, key string, ttl time.Duration, query url.Values) (string, error) {
	if ttl < time.Second || ttl > 7*24*time.Hour {
		return "", fault.New(fault.InvalidRequest, "ttl %s is out of range, want 1s to 168h", ttl)
	}
	query.Set("X-Amz-Date", strconv.FormatInt(o.clock.Now().Unix(), 10))
	query.Set("X-Amz-Expires", strconv.Itoa(int(ttl/time.Second)))
	query.Set("X-Amz-Signature", signature(method, key, query))
	return (&url.URL{Scheme: "https", Host: host, Path: "/" + key, RawQuery: query.Encode()}).String(), nil
}

// signature returns the signature of a presigned URL, which covers everything else in the URL.
func signature(method, key string, query url.Values) string {
	mac := hmac.New(sha256.New, []byte("fake"))
	for _, part := range []string{method, key, query.Get("X-Amz-Date"), query.Get("X-Amz-Expires"), query.Get("type"), query.Get("disposition")} {
		mac.Write([]byte(part + "\n"))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// RoundTrip implements http.RoundTripper. It answers requests to presigned URLs without a
// network.
func (o *Outputs) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	o.serve(w, r)
	return w.Result(), nil
}

func (o *Outputs) serve(w http.ResponseWriter, r *http.Request) {
	key, query := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	signed, _ := strconv.ParseInt(query.Get("X-Amz-Date"), 10, 64)
	seconds, _ := strconv.ParseInt(query.Get("X-Amz-Expires"), 10, 64)
	valid := hmac.Equal([]byte(query.Get("X-Amz-Signature")), []byte(signature(r.Method, key, query)))
	if !valid || !o.clock.Now().Before(time.Unix(signed+seconds, 0)) {
		http.Error(w, "invalid or expired signature", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPut {
		content, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != query.Get("type") {
			http.Error(w, "Content-Type: want "+query.Get("type"), http.StatusForbidden)
			return
		}
		o.Store(port.Uploads, key, query.Get("type"), string(content))
		return
	}
	found, err := o.get(port.Accepted, key)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", query.Get("type"))
	w.Header().Set("Content-Disposition", query.Get("disposition"))
	http.ServeContent(w, r, "", found.ModifiedAt, strings.NewReader(found.content))
}
