package r2_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/port"
)

// before calls a function once, before the first copy request.
type before struct {
	http.RoundTripper
	once sync.Once
	do   func()
}

func (b *before) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		b.once.Do(b.do)
	}
	return b.RoundTripper.RoundTrip(r)
}

// TestObjectChangedDuringCopyIsNotAccepted replaces the verified object by one
// of the same size after the last check. Rule 14 of shared/README.md.
func TestObjectChangedDuringCopyIsNotAccepted(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1000, smallestPart + 1000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			ours, workers := setup(t)
			uploader, err := r2.NewUploader(workers)
			if err != nil {
				t.Fatal(err)
			}
			const key = "exports/t1/a"
			put := func(letter string) {
				if err := uploader.Upload(t.Context(), key, strings.NewReader(strings.Repeat(letter, size)), int64(size), ""); err != nil {
					t.Error(err)
				}
			}
			put("a")
			verified, err := outputs(t, ours).Head(t.Context(), port.Uploads, key)
			if err != nil {
				t.Fatal(err)
			}
			ours.HTTP = &http.Client{Transport: &before{RoundTripper: ours.HTTP.Transport, do: func() { put("b") }}}
			for range 2 { // an object that changed before the call
				if _, err := outputs(t, ours).Accept(t.Context(), key, verified.ETag); !errors.Is(err, port.ErrChanged) {
					t.Errorf("got %v, want ErrChanged", err)
				}
			}
			if _, err := outputs(t, ours).Head(t.Context(), port.Accepted, key); !errors.Is(err, port.ErrNotFound) {
				t.Errorf("got %v, want no accepted object", err)
			}
		})
	}
}

// copied replaces the responses of copies.
type copied struct {
	http.RoundTripper
	fields string
}

func (c copied) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil && r.Header.Get("X-Amz-Copy-Source") != "" {
		body := `<CopyObjectResult><ETag>"e"</ETag>` + c.fields + `</CopyObjectResult>`
		answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	return answer, err
}

func TestDigestOfTheStore(t *testing.T) {
	t.Parallel()
	ours, workers := setup(t)
	uploader, err := r2.NewUploader(workers)
	if err != nil {
		t.Fatal(err)
	}
	const key = "exports/t1/a"
	if err := uploader.Upload(t.Context(), key, strings.NewReader("abc"), 3, ""); err != nil {
		t.Fatal(err)
	}
	verified, err := outputs(t, ours).Head(t.Context(), port.Uploads, key)
	if err != nil {
		t.Fatal(err)
	}
	const sum = "<ChecksumSHA256>ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=</ChecksumSHA256>"
	for fields, want := range map[string]string{
		"":  "",
		sum: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		sum + "<ChecksumType>FULL_OBJECT</ChecksumType>":          "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		sum + "<ChecksumType>COMPOSITE</ChecksumType>":            "",
		"<ChecksumSHA256>ungWv48Bz+pBQUDeXa4i-2</ChecksumSHA256>": "",
		"<ChecksumCRC64NVME>NAeoMAMZ25g=</ChecksumCRC64NVME>":     "",
	} {
		other := ours
		other.HTTP = &http.Client{Transport: copied{ours.HTTP.Transport, fields}}
		if accepted, err := outputs(t, other).Accept(t.Context(), key, verified.ETag); err != nil || accepted.Digest != want {
			t.Errorf("%s: got digest %q (%v), want %q", fields, accepted.Digest, err, want)
		}
	}
}
