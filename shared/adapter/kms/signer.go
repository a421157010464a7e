// Package kms signs tokens with keys of AWS KMS: ECDSA on P-256 with SHA-256.
//
// Private keys never leave KMS, and each signature is one call. Verification needs no call,
// because each process reads the public keys once. To replace a key, first configure the new
// one after the current one, so that every process accepts its signatures. Then configure it
// before the current one. Remove the old key when its last token has expired.
//
// Signatures have the form of JWS (R and S, 64 bytes), and key ids do not identify the account.
// Aliases are refused, because an alias can change between a signature and its verification.
// Keys that are not for signing on P-256 are refused too.
package kms

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// maxTries is how often the SDK tries one call before it returns throttling.
const maxTries = 6

// Signer signs with keys of KMS. It is safe for concurrent use.
type Signer struct {
	client *kms.Client
	names  []string
	// loading contains the loaded keys, nil before the first load. A goroutine that receives
	// them must send them back.
	loading chan []key
}

var _ port.Signer = (*Signer)(nil)

type key struct {
	// name is the key's id or ARN.
	name string
	port.VerificationKey
}

// New returns a signer with keys by id or ARN. The first one signs; signatures
// of all are valid. It makes no call.
func New(cfg aws.Config, keys ...string) (*Signer, error) {
	var problems []error
	if len(keys) == 0 {
		problems = append(problems, errors.New("no keys"))
	}
	for i, name := range keys {
		switch {
		case name == "":
			problems = append(problems, fmt.Errorf("key %d has no id", i+1))
		case strings.HasPrefix(name, "alias/") || strings.Contains(name, ":alias/"):
			problems = append(problems, fmt.Errorf("%s is an alias; the id or ARN of the key is needed", name))
		case slices.Contains(keys[:i], name):
			problems = append(problems, fmt.Errorf("%s is listed twice", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("cannot use the keys of KMS: %w", err)
	}
	client := kms.NewFromConfig(cfg, func(o *kms.Options) { o.RetryMaxAttempts = maxTries })
	loading := make(chan []key, 1)
	loading <- nil
	return &Signer{client, slices.Clone(keys), loading}, nil
}

// Current implements port.Signer.
func (s *Signer) Current(ctx context.Context) (string, error) {
	keys, err := s.load(ctx)
	if err != nil {
		return "", err
	}
	return keys[0].ID, nil
}

// Sign implements port.Signer.
func (s *Signer) Sign(ctx context.Context, keyID string, message []byte) ([]byte, error) {
	keys, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(k key) bool { return k.ID == keyID })
	if at < 0 {
		return nil, port.ErrNotFound
	}
	digest := sha256.Sum256(message)
	answer, err := s.client.Sign(ctx, &kms.SignInput{
		KeyId: &keys[at].name, Message: digest[:], MessageType: types.MessageTypeDigest,
		SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256,
	})
	switch {
	case noMore(err):
		return nil, port.ErrNotFound
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "KMS cannot sign now")
	}
	signature, err := joined(answer.Signature)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "KMS has not given a signature")
	}
	return signature, nil
}

// Keys implements port.Signer. It omits keys after the first that KMS has disabled or deleted.
func (s *Signer) Keys(ctx context.Context) ([]port.VerificationKey, error) {
	keys, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	public := make([]port.VerificationKey, len(keys))
	for i, k := range keys {
		public[i] = k.VerificationKey
	}
	return public, nil
}

// load reads the public keys once. One caller reads at a time; the others wait
// until their ctx ends.
func (s *Signer) load(ctx context.Context) (keys []key, err error) {
	select {
	case keys = <-s.loading:
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "the keys of KMS were not read in time")
	}
	if keys != nil {
		s.loading <- keys
		return keys, nil
	}
	defer func() { s.loading <- keys }()
	var all []key
	for i, name := range s.names {
		k, err := s.read(ctx, name)
		if noMore(err) && i > 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func (s *Signer) read(ctx context.Context, name string) (key, error) {
	answer, err := s.client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &name})
	if err != nil {
		return key{}, fault.Wrap(err, fault.Unavailable, "KMS cannot give a public key now")
	}
	parsed, err := x509.ParsePKIXPublicKey(answer.PublicKey)
	if err != nil {
		return key{}, fmt.Errorf("the public key of %s cannot be parsed: %w", name, err)
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() || answer.KeyUsage != types.KeyUsageTypeSignVerify {
		return key{}, fmt.Errorf("the key %s is not for signing with ECDSA on P-256", name)
	}
	id, err := port.KeyID(public)
	if err != nil {
		return key{}, err
	}
	return key{name, port.VerificationKey{ID: id, Public: public}}, nil
}

// noMore reports whether KMS has deleted or disabled the key.
func noMore(err error) bool {
	_, unknown := errors.AsType[*types.NotFoundException](err)
	_, disabled := errors.AsType[*types.DisabledException](err)
	_, deleted := errors.AsType[*types.KMSInvalidStateException](err)
	return unknown || disabled || deleted
}
