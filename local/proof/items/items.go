// Package items has a bucket and a queue whose items start runs: servers with the APIs of Amazon S3
// and SQS on loopback.
package items

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

// Owner are the credentials of the servers. Secret is their text as a secret of a tenant.
var Owner = s3.Keys{ID: "AKIASUITE", Secret: "suite/sensor+secret"}

// Secret returns the text of the secret with the credentials.
func Secret() string { return Owner.ID + ":" + Owner.Secret }

// The names of the buckets. Other is one that only its owner can read.
const (
	BucketName = "items"
	Region     = s3.Region
)

// Bucket is a bucket with the API of Amazon S3.
type Bucket struct {
	// URL is the address of the store.
	URL    string
	t      testing.TB
	client *awss3.Client
}

// serve serves with a certificate over HTTPS, else over HTTP.
func serve(t testing.TB, certificate *tls.Certificate, handler http.Handler) (address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	if certificate == nil {
		server.Start()
	} else {
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	return server.URL
}

// NewBucket starts a store with an empty bucket.
func NewBucket(t testing.TB, certificate *tls.Certificate) *Bucket {
	t.Helper()
	server, err := s3.Start(t.Context(), s3.Config{
		Dir: t.TempDir(), Uploads: BucketName, Accepted: "kept", Owner: Owner, Worker: s3.Keys{ID: "other", Secret: "other-secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	b := &Bucket{URL: server.URL(), t: t, client: awss3.New(awss3.Options{
		Region: Region, BaseEndpoint: aws.String(server.URL()), UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: Owner.ID, SecretAccessKey: Owner.Secret}, nil
		}),
	})}
	if certificate != nil { // a signature has the host that the client used
		behind, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		b.URL = serve(t, certificate, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.Host = r.In.Host
		}})
	}
	return b
}

// Put writes an object.
func (b *Bucket) Put(key, content string) {
	b.t.Helper()
	if _, err := b.client.PutObject(b.t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(BucketName), Key: aws.String(key), Body: strings.NewReader(content),
	}); err != nil {
		b.t.Fatal(err)
	}
}

// NewQueue starts a queue.
func NewQueue(t testing.TB, certificate *tls.Certificate) *Queue {
	t.Helper()
	q := &Queue{received: map[string]int{}}
	q.URL = serve(t, certificate, q) + "/123456789012/items"
	return q
}
