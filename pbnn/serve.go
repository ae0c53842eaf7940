package pbnn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/rpc"

	"gobnn/bayes/limits"
)

// ErrRefused says that a question is beyond a limit that the owner of a shard's data has set, or is about a place that
// is not finite. Test for it with errors.Is, also over a connection.
var ErrRefused = errors.New("pbnn: the shard refuses the question")

// ServeSettings are what the owner of a shard's rows sets. The zero value of every field works.
type ServeSettings struct {
	// TLS, if set, encrypts the connections and says whose are accepted: it must hold the shard's certificate, and ask
	// each client for one (ClientAuth tls.RequireAndVerifyClientCert) signed by one of ClientCAs. Default: none of this.
	TLS *tls.Config

	// MinBatchSize is the smallest number n of rows in a mini-batch, that is in a sum that leaves the shard: at least 2;
	// default 5, a usual threshold in the publication of counts.
	MinBatchSize int
	MaxBatches   int // M, the most mini-batches of a question; default 1000
	MaxRows      int // the most rows n M of a question, for each chain; default 1 000 000
	MaxChains    int // J, the most chains of a question; default 1000
	// MaxQuestions is how many questions may be in work or waiting at once; further ones are answered by an error. Default
	// 16.
	MaxQuestions int
}

// minBatchSize is the default of MinBatchSize.
const minBatchSize = 5

func (s ServeSettings) withDefaults() ServeSettings {
	s.MinBatchSize = cmp.Or(s.MinBatchSize, minBatchSize)
	s.MaxBatches = cmp.Or(s.MaxBatches, 1000)
	s.MaxRows = cmp.Or(s.MaxRows, 1_000_000)
	s.MaxChains = cmp.Or(s.MaxChains, 1000)
	s.MaxQuestions = cmp.Or(s.MaxQuestions, 16)
	return s
}

// check is an error if the settings do not fit a shard of so many rows.
func (s ServeSettings) check(rows int) error {
	least := s.MinBatchSize
	if err := limits.Check("pbnn: ServeSettings",
		limits.Field("MinBatchSize", least, least >= 2 && least <= rows, fmt.Sprintf("from 2 to the shard's %d rows", rows)),
		limits.Field("MaxBatches", s.MaxBatches, s.MaxBatches >= 1, "at least 1"),
		limits.Field("MaxRows", s.MaxRows, s.MaxRows >= least, fmt.Sprintf("at least MinBatchSize, %d", least)),
		limits.Field("MaxChains", s.MaxChains, s.MaxChains >= 1, "at least 1"),
		limits.Field("MaxQuestions", s.MaxQuestions, s.MaxQuestions >= 1, "at least 1"),
	); err != nil {
		return err
	}
	return checkMutual(s.TLS)
}

// checkMutual is an error if a server with the configuration would not authenticate its clients.
func checkMutual(config *tls.Config) error {
	if config == nil || config.GetConfigForClient != nil { // nil: no TLS, or decided for each client
		return nil
	}
	own := config.VerifyPeerCertificate != nil || config.VerifyConnection != nil // the owner's own checks
	switch {
	case len(config.Certificates) == 0 && config.GetCertificate == nil:
		return errors.New("pbnn: ServeSettings.TLS has no certificate of the shard: set Certificates")
	case config.ClientAuth == tls.RequireAndVerifyClientCert && config.ClientCAs == nil && !own:
		return errors.New("pbnn: ServeSettings.TLS.ClientCAs is nil: whoever has a certificate of any public authority " +
			"would be let in: set those that sign the clients' certificates")
	case config.ClientAuth == tls.RequireAndVerifyClientCert, config.ClientAuth == tls.RequireAnyClientCert && own:
		return nil
	}
	return fmt.Errorf("pbnn: ServeSettings.TLS.ClientAuth is %v: it must be %v, or anybody may ask",
		config.ClientAuth, tls.RequireAndVerifyClientCert)
}

// Serve answers questions to a shard, by net/rpc on the listener, until the listener is closed, which is no error.
// Questions beyond a limit of the settings are refused with an error that names the limit. Without TLS there is neither
// encryption nor authentication: listen where only the entitled can connect, such as behind a tunnel.
//
// The limits keep one question from blocking the shard, and an answer from revealing a single row. They do not limit
// the number of questions: from many overlapping sums single rows can be computed.
func Serve(listener net.Listener, shard Shard, settings ServeSettings) error {
	description, err := shard.Describe(context.Background())
	if err != nil {
		return fmt.Errorf("pbnn: serving a shard: %w", err)
	}
	settings = settings.withDefaults()
	if err := settings.check(description.Rows); err != nil {
		return err
	}
	server := rpc.NewServer()
	service := &service{shard: shard, settings: settings, open: make(chan struct{}, settings.MaxQuestions)}
	if err := server.RegisterName(rpcName, service); err != nil {
		return fmt.Errorf("pbnn: %w", err)
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
			return fmt.Errorf("pbnn: serving a shard: %w", err)
		}
		go server.ServeConn(connection)
	}
}

const rpcName = "PBNNShard"

// service is a shard with the methods that net/rpc calls, within the limits of its owner.
type service struct {
	shard    Shard
	settings ServeSettings
	open     chan struct{} // holds an entry for each question that is being answered
}

// Describe answers a call.
func (s *service) Describe(_ struct{}, out *Description) (err error) {
	*out, err = s.shard.Describe(context.Background())
	return err
}

// Differences answers a call.
func (s *service) Differences(q Request, out *Answer) error {
	return s.answer(s.shard.Differences, q, out)
}

// Gradients answers a call.
func (s *service) Gradients(q Request, out *Answer) error { return s.answer(s.shard.Gradients, q, out) }

func (s *service) answer(method func(context.Context, Request) (Answer, error), q Request, out *Answer) (err error) {
	if err := s.settings.permit(q); err != nil {
		return err
	}
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
	default:
		return fmt.Errorf("pbnn: the shard has %d questions to answer already, its MaxQuestions: ask later", cap(s.open))
	}
	*out, err = method(context.Background(), q)
	return err
}

// permit is an error if a question is beyond a limit, or is about a place that is not finite.
func (s ServeSettings) permit(q Request) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
	}
	switch {
	case q.BatchSize < s.MinBatchSize:
		return refuse("its mini-batches have %d rows: MinBatchSize is %d", q.BatchSize, s.MinBatchSize)
	case q.Batches > s.MaxBatches:
		return refuse("it is for %d mini-batches: MaxBatches is %d", q.Batches, s.MaxBatches)
	case q.Batches > s.MaxRows/q.BatchSize: // the product could overflow
		return refuse("it is for %d mini-batches of %d rows: MaxRows is %d", q.Batches, q.BatchSize, s.MaxRows)
	case q.Chains > s.MaxChains:
		return refuse("it is for %d chains: MaxChains is %d", q.Chains, s.MaxChains)
	}
	return q.checkPlaces(math.MaxFloat64)
}
