package shards_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log"
	"math/big"
	"net"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/pbnn/shards"

	"gonum.org/v1/gonum/mat"
)

// authority signs certificates: a new one each time that the example runs.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// sign makes a certificate for 127.0.0.1, by its own key if by is nil.
func sign(name string, by *authority) (tls.Certificate, *authority) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        by == nil, BasicConstraintsValid: true,
	}
	own := &authority{certificate, key}
	if by == nil {
		by = own
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		log.Fatal(err)
	}
	if own.certificate, err = x509.ParseCertificate(signed); err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, own
}

// The owner of the rows lets in only those who have a certificate of the authority that both trust, and answers no
// question about fewer than 10 rows.
func ExampleServe() {
	_, trusted := sign("our hospitals", nil)
	roots := x509.NewCertPool()
	roots.AddCert(trusted.certificate)
	ours, _ := sign("shard", trusted)
	theirs, _ := sign("sampler", trusted)
	_, stranger := sign("somebody", nil)
	forged, _ := sign("sampler", stranger)

	// At the owner's.
	xs := mat.NewDense(50, 1, nil)
	data := &dataset.Dataset{
		Name: "ours", Task: dataset.Regression, Features: []string{"x"}, Target: "y",
		X: xs, Y: make([]float64, 50),
	}
	for i := range data.Y {
		xs.Set(i, 0, float64(i)/25-1)
		data.Y[i] = .5 * xs.At(i, 0)
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .1}, Stochastic: bayes.All()}
	shard, err := shards.New(model, data, 0, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer shard.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		ended <- shards.Serve(listener, shard, shards.Limits{
			TLS: &tls.Config{
				Certificates: []tls.Certificate{ours}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
			},
			MinBatchSize: 10,
		})
	}()

	// At the sampler's.
	ctx := context.Background()
	address := listener.Addr().String()
	remote := shards.Dial(address, &tls.Config{Certificates: []tls.Certificate{theirs}, RootCAs: roots})
	q := shards.Request{Batches: 4, BatchSize: 10, Chains: 1, From: []float64{0, 0}, To: []float64{.5, 0}}
	answer, err := remote.Differences(ctx, q)
	fmt.Println(len(answer.Values), "differences, all better:", answer.Values[0] > 0, err)
	q.BatchSize = 1
	_, err = remote.Differences(ctx, q)
	fmt.Println(strings.TrimPrefix(err.Error(), address+": "))

	// At a stranger's.
	for _, certificates := range [][]tls.Certificate{nil, {forged}} {
		_, err := shards.Dial(address, &tls.Config{Certificates: certificates, RootCAs: roots}).Describe(ctx)
		fmt.Println("let in:", err == nil)
	}
	_, err = shards.Dial(address, nil).Describe(ctx)
	fmt.Println("let in:", err == nil)

	remote.Close()
	listener.Close()
	fmt.Println(<-ended)
	// Output:
	// 4 differences, all better: true <nil>
	// shards: the shard refuses the question: its mini-batches have 1 rows: MinBatchSize is 10
	// let in: false
	// let in: false
	// let in: false
	// <nil>
}
