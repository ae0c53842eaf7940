package shards

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/rpc"

	"gobnn/bayes/limits"
)

// Limits are what the owner of a shard's rows sets. The zero value of every field works.
type Limits struct {
	// TLS, if set, encrypts the connections and says whose are accepted: it must hold the shard's certificate, and ask
	// each client for one (ClientAuth tls.RequireAndVerifyClientCert) signed by one of ClientCAs. Default: none of this.
	TLS *tls.Config

	// MinBatchSize is the smallest number n of rows in a mini-batch, that is in a sum that leaves the shard: at least 2;
	// default 5, a usual threshold in the publication of counts.
	MinBatchSize int
}

const (
	minBatchSize = 5         // the default of MinBatchSize
	mostBatches  = 1000      // M of a question
	mostAtOnce   = 16        // questions in work or waiting; further ones get an error as their answer
	mostRows     = 1_000_000 // n M of a question, for each chain
	mostChains   = 1000      // J of a question
)

// prepare fills in the defaults, and returns an error if the limits do not fit a shard of this number of rows.
func (l *Limits) prepare(rows int) error {
	if err := limits.Fill("shards: Limits",
		limits.Int("MinBatchSize", &l.MinBatchSize, minBatchSize).Between(2, rows).Because("the rows of the shard"),
	); err != nil {
		return err
	}
	return checkMutual(l.TLS)
}

// checkMutual is an error if a server with the configuration would not authenticate its clients.
func checkMutual(config *tls.Config) error {
	if config == nil || config.GetConfigForClient != nil { // nil: no TLS, or decided for each client
		return nil
	}
	own := config.VerifyPeerCertificate != nil || config.VerifyConnection != nil // the owner's own checks
	switch {
	case len(config.Certificates) == 0 && config.GetCertificate == nil:
		return errors.New("shards: Limits.TLS has no certificate of the shard: set Certificates")
	case config.ClientAuth == tls.RequireAndVerifyClientCert && config.ClientCAs == nil && !own:
		return errors.New("shards: Limits.TLS.ClientCAs is nil: whoever has a certificate of any public authority " +
			"would be let in: set those that sign the clients' certificates")
	case config.ClientAuth == tls.RequireAndVerifyClientCert, config.ClientAuth == tls.RequireAnyClientCert && own:
		return nil
	}
	return fmt.Errorf("shards: Limits.TLS.ClientAuth is %v: it must be %v, or anybody may ask",
		config.ClientAuth, tls.RequireAndVerifyClientCert)
}

// Serve answers questions to a shard, by net/rpc on the listener, until the listener is closed, which is no error.
// Questions beyond a limit are refused with an error that names it; one question is about at most a million rows, in
// 1000 mini-batches, and 1000 chains. Without TLS there is neither encryption nor authentication: listen where only the
// entitled can connect, such as behind a tunnel.
func Serve(listener net.Listener, shard Shard, settings Limits) error {
	description, err := shard.Describe(context.Background())
	if err != nil {
		return fmt.Errorf("shards: serving a shard: %w", err)
	}
	if err := settings.prepare(description.Rows); err != nil {
		return err
	}
	server := rpc.NewServer()
	service := &service{shard: shard, limits: settings, open: make(chan struct{}, mostAtOnce)}
	if err := server.RegisterName(rpcName, service); err != nil {
		return fmt.Errorf("shards: %w", err)
	}
	if settings.TLS != nil {
		listener = tls.NewListener(listener, settings.TLS)
	}
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("shards: serving a shard: %w", err)
		}
		go server.ServeConn(connection)
	}
}

const rpcName = "PBNNShard"

// service is a shard with the methods that net/rpc calls, within the limits of its owner.
type service struct {
	shard  Shard
	limits Limits
	open   chan struct{} // holds an entry for each question that is being answered
}

// Describe answers a call.
func (s *service) Describe(_ struct{}, out *Description) (err error) {
	*out, err = s.shard.Describe(context.Background())
	return err
}

// Differences answers a call.
func (s *service) Differences(q Request, out *Answer) (err error) {
	if err := s.limits.permit(q); err != nil {
		return err
	}
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
	default:
		return fmt.Errorf("shards: the shard has %d questions to answer already: ask later", cap(s.open))
	}
	*out, err = s.shard.Differences(context.Background(), q)
	return err
}

// permit is an error if a question is beyond a limit.
func (l Limits) permit(q Request) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{errRefused}, args...)...)
	}
	switch {
	case q.BatchSize < l.MinBatchSize:
		return refuse("its mini-batches have %d rows: MinBatchSize is %d", q.BatchSize, l.MinBatchSize)
	case q.Batches > mostBatches:
		return refuse("it is for %d mini-batches: a question may be for %d", q.Batches, mostBatches)
	case q.Batches > mostRows/q.BatchSize: // the product could overflow
		return refuse("it is for %d mini-batches of %d rows: a question may be about %d rows", q.Batches, q.BatchSize,
			mostRows)
	case q.Chains > mostChains:
		return refuse("it is for %d chains: a question may be for %d", q.Chains, mostChains)
	}
	return nil
}
