package sensor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The period of polls.
const (
	DefaultEvery = 30 * time.Second
	MinEvery     = 10 * time.Second
	MaxEvery     = time.Hour
)

// The longest name of a bucket and the longest key, in bytes (Amazon S3 User Guide, "Bucket naming
// rules" and "Naming Amazon S3 objects").
const (
	MaxBucket = 63
	MaxKey    = 1024
)

// Bucket takes the new objects of a bucket with the API of Amazon S3.
type Bucket struct {
	Name string `json:"name"`
	// Prefix begins the keys of the objects; empty means all objects.
	Prefix string `json:"prefix,omitempty"`
	// Endpoint is the address of the store; empty means Amazon S3 in the region.
	Endpoint string `json:"endpoint,omitempty"`
	// Region is the region of signatures; empty means us-east-1.
	Region string `json:"region,omitempty"`
	// SecretRef names the secret of the tenant with the credentials; see ParseCredentials.
	SecretRef string `json:"secretRef"`
	// Existing: the objects that the bucket has when the sensor is stored start runs as well.
	Existing bool `json:"existing,omitempty"`
	// Every is the period of polls as a duration such as "30s"; empty means DefaultEvery.
	Every string `json:"every,omitempty"`
}

// Queue takes the messages of a queue with the API of Amazon SQS.
type Queue struct {
	URL string `json:"url"`
	// Region is the region of signatures; empty means that of the host of URL, or us-east-1.
	Region    string `json:"region,omitempty"`
	SecretRef string `json:"secretRef"`
	// Every is as for Bucket.
	Every string `json:"every,omitempty"`
}

const defaultRegion = "us-east-1"

// Address returns the URL of the store.
func (b Bucket) Address() string {
	return strings.TrimSuffix(cmp.Or(b.Endpoint, "https://s3."+b.SigningRegion()+".amazonaws.com"), "/")
}

// SigningRegion returns the region of signatures.
func (b Bucket) SigningRegion() string { return cmp.Or(b.Region, defaultRegion) }

// Source is the source of the events of the objects.
func (b Bucket) Source() string { return b.Address() + "/" + b.Name }

// SigningRegion returns the region of signatures.
func (q Queue) SigningRegion() string {
	if q.Region != "" {
		return q.Region
	}
	if u, err := url.Parse(q.URL); err == nil {
		if labels := strings.Split(u.Hostname(), "."); len(labels) > 3 && labels[0] == "sqs" && labels[2] == "amazonaws" {
			return labels[1]
		}
	}
	return defaultRegion
}

// Polled reports whether Sortie looks for the items. The place identifies the items: a sensor with
// another place has other items.
func (s *Settings) Polled() (place string, every time.Duration, ok bool) {
	var what, period string
	switch {
	case s == nil:
		return "", 0, false
	case s.Bucket != nil:
		what, period = fmt.Sprintf("bucket %q %q", s.Bucket.Source(), s.Bucket.Prefix), s.Bucket.Every
	case s.Queue != nil:
		what, period = fmt.Sprintf("queue %q", s.Queue.URL), s.Queue.Every
	default:
		return "", 0, false
	}
	sum := sha256.Sum256([]byte(what))
	every, err := time.ParseDuration(period)
	if err != nil {
		every = DefaultEvery
	}
	return hex.EncodeToString(sum[:16]), min(max(every, MinEvery), MaxEvery), true
}

// SecretRef names the secret of a polled sensor.
func (s *Settings) SecretRef() string {
	switch {
	case s.Bucket != nil:
		return s.Bucket.SecretRef
	case s.Queue != nil:
		return s.Queue.SecretRef
	}
	return ""
}

// Credentials are those of an API of Amazon.
type Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// ParseCredentials reads the text of a secret: ACCESS_KEY_ID:SECRET_ACCESS_KEY, with
// :SESSION_TOKEN after it for temporary ones. ok is false for another text.
func ParseCredentials(text string) (c Credentials, ok bool) {
	parts := strings.SplitN(strings.TrimSpace(text), ":", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" || strings.ContainsAny(text, " \t\r") {
		return c, false
	}
	c = Credentials{AccessKeyID: parts[0], SecretAccessKey: parts[1]}
	if len(parts) == 3 {
		c.SessionToken = parts[2]
	}
	return c, true
}
