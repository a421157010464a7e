package secrets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

// Document is the content of a secret.
type Document interface {
	// Fingerprints returns, by field, the first 6 hexadecimal digits of the
	// SHA-256 of each value.
	Fingerprints() map[string]string
	kind() string
	problems() []error
}

// Clients are the callers of the API.
type Clients struct {
	// Tokens are bearer tokens of the tenant "default" with all scopes except exec. There are
	// several during a rotation.
	Tokens []string `json:"tokens,omitempty"`
	// Records are the other tokens. A document without tokens has an empty list, so that the
	// last token can be revoked. A document without both members is incomplete.
	Records []access.Token `json:"records"`
}

// All returns the records of both kinds of tokens.
func (c Clients) All() []access.Token {
	return slices.Concat(access.OfTexts(c.Tokens, access.Default, access.Default), c.Records)
}

// Fly has the token of the Machines API.
type Fly struct {
	Token string `json:"token"`
}

// Kubernetes has the credentials of the cluster for pools with the runner "kubernetes".
type Kubernetes struct {
	// Kubeconfig is the text of a kubeconfig file without references to other files.
	Kubeconfig string `json:"kubeconfig"`
	// EKS is the name of an EKS cluster; empty for another cluster. The role of the function
	// authenticates to it in place of the user of Kubeconfig.
	EKS string `json:"eks,omitempty"`
}

// Canary has the client token with which the canary calls the API.
type Canary struct {
	Token string `json:"token"`
}

// Traces are the headers of the requests that export traces.
type Traces struct {
	Headers map[string]string `json:"headers"`
}

// Outputs has the keys of Sortie and its workers to the buckets.
type Outputs struct {
	// AccountID is the id of the Cloudflare account. Endpoint and Region are for stores other
	// than R2.
	AccountID string `json:"accountId,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	Region    string `json:"region,omitempty"`
	// The first key has access to both buckets. The worker's key has access only to Uploads.
	AccessKeyID           string `json:"accessKeyId"`
	SecretAccessKey       string `json:"secretAccessKey"`
	WorkerAccessKeyID     string `json:"workerAccessKeyId"`
	WorkerSecretAccessKey string `json:"workerSecretAccessKey"`
}

// Events has the seed of the key that signs events. A stage gets a random seed when it is
// deployed.
type Events struct {
	// Seed is at least 43 random letters and digits.
	Seed string `json:"seed"`
}

// seedLength is the number of characters of a seed: 256 random bits.
const seedLength = 43

// Bytes returns the private key: 32 bytes.
func (e Events) Bytes() []byte {
	sum := sha256.Sum256([]byte(e.Seed))
	return sum[:]
}

// documents lists the kinds of documents.
var documents = []struct {
	zero    Document
	meaning string
	parse   func([]byte) (Document, error)
}{
	{Clients{}, "the tokens of clients", parse[Clients]},
	{Fly{}, "the token of the Machines API", parse[Fly]},
	{Kubernetes{}, "the access to the Kubernetes cluster", parse[Kubernetes]},
	{Outputs{}, "the keys to the outputs, Sortie's and the worker's", parse[Outputs]},
	{Canary{}, "the client token of the canary", parse[Canary]},
	{Traces{}, "the headers of the exporter of traces", parse[Traces]},
}

// Kinds lists the names of the documents.
func Kinds() []string {
	var kinds []string
	for _, d := range documents {
		kinds = append(kinds, d.zero.kind())
	}
	return kinds
}

// Meanings describes each kind's content in a few words.
func Meanings() map[string]string {
	meanings := map[string]string{}
	for _, d := range documents {
		meanings[d.zero.kind()] = d.meaning
	}
	return meanings
}

// Parse decodes the document of a kind. The error names every problem. An unknown field is a
// problem.
func Parse(kind string, text []byte) (Document, error) {
	for _, d := range documents {
		if d.zero.kind() == kind {
			return d.parse(text)
		}
	}
	return nil, fmt.Errorf("there is no secret of the kind %q; the kinds are %s", kind, strings.Join(Kinds(), ", "))
}

func parse[D Document](text []byte) (Document, error) {
	var document D
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return nil, fmt.Errorf("it has a field %s that is not known", name)
		}
		return nil, unreadable(err)
	}
	if decoder.More() {
		return nil, errors.New("data after the JSON document")
	}
	if err := errors.Join(document.problems()...); err != nil {
		return nil, err
	}
	return document, nil
}

func (Clients) kind() string    { return "clients" }
func (Fly) kind() string        { return "fly" }
func (Kubernetes) kind() string { return "kubernetes" }
func (Canary) kind() string     { return "canary" }
func (Traces) kind() string     { return "traces" }
func (Outputs) kind() string    { return "outputs" }
func (Events) kind() string     { return "events" }

func (c Clients) problems() (list []error) {
	if len(c.Tokens) == 0 && c.Records == nil {
		list = append(list, errors.New("tokens and records are missing, want one of them"))
	}
	for i, token := range c.Tokens {
		if err := access.CheckText(token); err != nil {
			list = append(list, fmt.Errorf("tokens[%d]: %w", i, err))
		}
		if slices.Contains(c.Tokens[:i], token) {
			list = append(list, fmt.Errorf("tokens[%d] is listed twice", i))
		}
	}
	return append(list, access.Validate(c.Records)...)
}

func (f Fly) problems() []error { return plain("token", f.Token) }

// eksName is the form of the name of an EKS cluster.
var eksName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

func (k Kubernetes) problems() (list []error) {
	if strings.TrimSpace(k.Kubeconfig) == "" {
		list = append(list, errors.New("kubeconfig is missing"))
	}
	if k.EKS != "" && !eksName.MatchString(k.EKS) {
		list = append(list, errors.New("eks is malformed, want the name of an EKS cluster"))
	}
	return list
}

func (c Canary) problems() []error { return plain("token", c.Token) }

func (t Traces) problems() (list []error) {
	if len(t.Headers) == 0 {
		list = append(list, errors.New("headers are missing"))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		if err := otel.CheckHeader(name, t.Headers[name]); err != nil {
			list = append(list, fmt.Errorf("headers: %w", err))
		}
	}
	return list
}

func (e Events) problems() []error {
	if len(e.Seed) < seedLength {
		return append(plain("seed", e.Seed), fmt.Errorf("seed of %d characters, want at least %d", len(e.Seed), seedLength))
	}
	return plain("seed", e.Seed)
}

func (o Outputs) problems() (list []error) {
	for _, field := range o.keys() {
		list = append(list, plain(field[0], field[1])...)
	}
	if u, err := url.Parse(o.Endpoint); o.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		list = append(list, errors.New("endpoint is no http or https URL"))
	}
	return list
}

func (o Outputs) keys() [][2]string {
	return [][2]string{
		{"accessKeyId", o.AccessKeyID},
		{"secretAccessKey", o.SecretAccessKey},
		{"workerAccessKeyId", o.WorkerAccessKeyID},
		{"workerSecretAccessKey", o.WorkerSecretAccessKey},
	}
}

// plain returns an error unless a value can be part of a header.
func plain(field, value string) []error {
	switch {
	case value == "":
		return []error{fmt.Errorf("%s is missing", field)}
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) || strings.TrimSpace(value) != value:
		return []error{fmt.Errorf("%s has a space at an end, or a character that is not printable ASCII", field)}
	}
	return nil
}

// Fingerprints implements Document.
func (c Clients) Fingerprints() map[string]string {
	prints := map[string]string{}
	for i, token := range c.Tokens {
		prints[fmt.Sprintf("tokens[%d]", i)] = fingerprint(token)
	}
	for _, record := range c.Records {
		prints["records."+record.Name] = record.Fingerprint()
	}
	return prints
}

// Fingerprints implements Document.
func (c Canary) Fingerprints() map[string]string {
	return map[string]string{"token": fingerprint(c.Token)}
}

// Fingerprints implements Document.
func (k Kubernetes) Fingerprints() map[string]string {
	return map[string]string{"kubeconfig": fingerprint(k.Kubeconfig)}
}

// Fingerprints implements Document.
func (t Traces) Fingerprints() map[string]string {
	prints := map[string]string{}
	for name, value := range t.Headers {
		prints["headers."+name] = fingerprint(value)
	}
	return prints
}

// Fingerprints implements Document.
func (f Fly) Fingerprints() map[string]string {
	return map[string]string{"token": fingerprint(f.Token)}
}

// Fingerprints implements Document.
func (e Events) Fingerprints() map[string]string {
	return map[string]string{"seed": fingerprint(e.Seed)}
}

// Fingerprints implements Document.
func (o Outputs) Fingerprints() map[string]string {
	prints := map[string]string{}
	for _, field := range o.keys() {
		prints[field[0]] = fingerprint(field[1])
	}
	return prints
}

func fingerprint(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:3])
}
