package r2_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/port"
)

// before does something once, before the first request that copies is sent.
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

// TestRule14WhatChangesWhileItIsCopiedIsNotKept: an object of the same size takes
// the place of the one that was verified, after the last look at it.
func TestRule14WhatChangesWhileItIsCopiedIsNotKept(t *testing.T) {
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
			for range 2 { // and when it has been changed before
				if _, err := outputs(t, ours).Accept(t.Context(), key, verified.ETag); !errors.Is(err, port.ErrChanged) {
					t.Errorf("the answer is %v, want ErrChanged", err)
				}
			}
			if _, err := outputs(t, ours).Head(t.Context(), port.Accepted, key); !errors.Is(err, port.ErrNotFound) {
				t.Errorf("something is kept: %v", err)
			}
		})
	}
}
