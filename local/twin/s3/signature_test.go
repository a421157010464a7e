package s3_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

// TestSignatures changes requests after signing.
func TestSignatures(t *testing.T) {
	t.Parallel()
	root := start(t, config(t.TempDir())).URL()
	dial(t, root, owner).put("uploads", "a", "hello")
	dial(t, root, owner).put("kept", "a", "accepted")
	for _, row := range []struct {
		name, method, path string
		keys               s3.Keys
		before             time.Duration // age of the signature
		presigned          bool
		change             func(*http.Request)
		status             int
		code               string
	}{
		{name: "presigned", path: "/uploads/a", presigned: true, status: 200},
		{name: "presigned upload", method: "PUT", path: "/uploads/b", presigned: true, change: body("new"), status: 200},
		{name: "presigned, another object", path: "/uploads/a", presigned: true, change: path("/kept/a"), status: 403, code: "SignatureDoesNotMatch"},
		{name: "presigned, another method", path: "/uploads/a", presigned: true, change: func(r *http.Request) { r.Method = "DELETE" }, status: 403, code: "SignatureDoesNotMatch"},
		{name: "presigned, another parameter", path: "/uploads/a", presigned: true, change: query("response-content-type", "text/html"), status: 403, code: "SignatureDoesNotMatch"},
		{name: "presigned, a longer life", path: "/uploads/a", presigned: true, change: query("X-Amz-Expires", "600"), status: 403, code: "SignatureDoesNotMatch"},
		{name: "presigned, expired", path: "/uploads/a", presigned: true, before: 2 * time.Minute, status: 403, code: "AccessDenied"},
		{name: "presigned, a guessed secret", path: "/uploads/a", presigned: true, keys: s3.Keys{ID: owner.ID, Secret: "guessed"}, status: 403, code: "SignatureDoesNotMatch"},
		{name: "presigned, the other bucket", path: "/kept/a", presigned: true, keys: worker, status: 403, code: "AccessDenied"},
		{name: "presigned, a body that is not used", path: "/uploads/a", presigned: true, change: body("ignored"), status: 200},
		{name: "presigned, a large body", path: "/uploads/a", presigned: true, change: body(strings.Repeat(" ", 8<<20+1)), status: 400, code: "EntityTooLarge"},
		{name: "signed", path: "/uploads/a", status: 200},
		{name: "signed, another object", path: "/uploads/a", change: path("/kept/a"), status: 403, code: "SignatureDoesNotMatch"},
		{name: "signed, another parameter", path: "/uploads/a", change: query("partNumber", "1"), status: 403, code: "SignatureDoesNotMatch"},
		{name: "signed, another body", method: "PUT", path: "/uploads/c", change: body("forged"), status: 400, code: "XAmzContentSHA256Mismatch"},
		{name: "signed, another list of objects", method: "POST", path: "/uploads?delete", change: body("<Delete/>"), status: 400, code: "XAmzContentSHA256Mismatch"},
	} {
		if row.keys.ID == "" {
			row.keys = owner
		}
		r := request(t, row.method, root+row.path, "")
		sign(t, r, row.keys, row.presigned, row.before)
		if row.change != nil {
			row.change(r)
		}
		if status, text := send(t, r); status != row.status || !strings.Contains(text, "<Code>"+row.code) && row.code != "" {
			t.Errorf("%s: got %d %s, want %d %s", row.name, status, text, row.status, row.code)
		}
	}
}

func sign(t *testing.T, r *http.Request, keys s3.Keys, presigned bool, before time.Duration) {
	t.Helper()
	of, at := aws.Credentials{AccessKeyID: keys.ID, SecretAccessKey: keys.Secret}, time.Now().Add(-before)
	if !presigned {
		const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		r.Header.Set("X-Amz-Content-Sha256", empty)
		r.ContentLength = -1 // the length is not part of the signature
		if err := v4.NewSigner().SignHTTP(t.Context(), of, r, empty, "s3", s3.Region, at); err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 0
		return
	}
	query("X-Amz-Expires", "60")(r)
	signed, _, err := v4.NewSigner().PresignHTTP(t.Context(), of, r, "UNSIGNED-PAYLOAD", "s3", s3.Region, at)
	if err == nil {
		r.URL, err = url.Parse(signed)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func path(to string) func(*http.Request) { return func(r *http.Request) { r.URL.Path = to } }

func query(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		all := r.URL.Query()
		all.Set(name, value)
		r.URL.RawQuery = all.Encode()
	}
}

func body(text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}
