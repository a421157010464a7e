package outside

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Certificate returns the certificate in a PEM file with its key, for a receiver on 127.0.0.1.
// It creates a missing file. A target that trusts the certificate can call the receiver.
func Certificate(file string) (*tls.Certificate, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = createCertificate(file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	return &pair, nil
}

func createCertificate(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := clock.System{}.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 1, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	return os.WriteFile(file, text, 0o600)
}
