package bayes_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// service answers requests for predictions of a regression. It links neither XLA nor C where its posterior predicts on
// compute.GoBackend: CGO_ENABLED=0 go build makes one static binary.
type service struct {
	posterior            *bayes.Posterior
	like                 *dataset.Dataset
	answered, refused    atomic.Int64
	mostRows             int
	mostBytes            int64
	nanosecondsOfAnswers atomic.Int64
}

func newService(posterior *bayes.Posterior) *service {
	s := &service{posterior: posterior, like: posterior.Like(), mostRows: 1000, mostBytes: 1 << 20}
	s.like.Target = "" // new rows have none
	return s
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /predict", s.predict)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "requests_answered %d\nrequests_refused %d\nseconds_of_answers %.3f\n", s.answered.Load(),
			s.refused.Load(), float64(s.nanosecondsOfAnswers.Load())/1e9)
	})
	return mux
}

// request has rows as objects of their columns, such as {"rows": [{"area": 80, "town": "Ulm"}]}.
type request struct {
	Rows  []map[string]any `json:"rows"`
	Level float64          `json:"level"` // of the intervals; default .9
}

type answer struct {
	Mean, StdDev, Lower, Upper []float64
	Warnings                   []string
}

func (s *service) predict(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		s.refused.Add(1)
		http.Error(w, fmt.Sprintf("the body is coded as %q: send it as it is, without Content-Encoding", coding),
			http.StatusUnsupportedMediaType)
		return
	}
	a, status, err := s.answer(r.Context(), http.MaxBytesReader(w, r.Body, s.mostBytes))
	if err != nil {
		s.refused.Add(1)
		http.Error(w, err.Error(), status)
		return
	}
	s.answered.Add(1)
	s.nanosecondsOfAnswers.Add(int64(time.Since(begun)))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // who asked has gone
}

func (s *service) answer(ctx context.Context, body io.Reader) (a answer, status int, err error) {
	q := request{Level: .9}
	decoder := json.NewDecoder(body)
	decoder.UseNumber() // as they are written: 1000000 may be a category
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&q)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = cmp.Or(more, errors.New("there is more after the object"))
		}
	}
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return a, http.StatusRequestEntityTooLarge, err
		}
		return a, http.StatusBadRequest, fmt.Errorf(`a request is {"rows": [...], "level": ...}: %w`, err)
	}
	if len(q.Rows) > s.mostRows {
		return a, http.StatusRequestEntityTooLarge, fmt.Errorf("%d rows: at most %d are predicted at a time", len(q.Rows),
			s.mostRows)
	}
	rows, err := s.table(q.Rows)
	if err != nil {
		return a, http.StatusBadRequest, err
	}
	p, err := s.posterior.Predict(ctx, rows.X)
	if err == nil {
		a.Warnings = p.Warnings
		a.Mean, err = p.Mean()
	}
	if err == nil {
		a.StdDev, err = p.StdDev()
	}
	if err == nil {
		a.Lower, a.Upper, err = p.Interval(q.Level)
	}
	return a, http.StatusBadRequest, err
}

// table reads the rows as those of a file: what is wrong is refused by row and column.
func (s *service) table(rows []map[string]any) (*dataset.Dataset, error) {
	if len(rows) == 0 {
		return nil, errors.New("there is no row to predict")
	}
	var text bytes.Buffer
	table := csv.NewWriter(&text)
	columns := slices.Sorted(maps.Keys(rows[0]))
	_ = table.Write(columns) // a buffer never fails
	for i, row := range rows {
		record := make([]string, len(columns))
		for k, column := range columns {
			record[k] = "NA" // not empty, since a line of nothing is no row
			if v := row[column]; v != nil {
				record[k] = fmt.Sprint(v)
			}
		}
		if len(row) > len(columns) {
			return nil, fmt.Errorf("row %d has other columns than the first", i)
		}
		_ = table.Write(record)
	}
	table.Flush()
	return dataset.ReadCSV(&text, dataset.CSVOptions{Delimiter: ',', Like: s.like})
}

// serve answers until the context ends, and then finishes what has begun, for 30 s at most.
func (s *service) serve(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: s.handler(), ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	finished := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		finish, end := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer end()
		finished <- server.Shutdown(finish)
	})
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-finished // ListenAndServe returns when Shutdown begins
}

// trained is what bayes.Load would read: y = 2 area + 3 where the town is Ulm, with noise N(0, 0.1^2).
func trained(tell func(error)) *bayes.Posterior {
	engine, err := compute.Open(compute.GoBackend)
	tell(err)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .1}, Stochastic: bayes.All()}
	bound, err := model.Bind(3, 1)
	tell(err)
	phi := compute.Floats(compute.Float32, []float64{2, 0, 3, 0, 2, 0, 3, 0}, 2, bound.D)
	p, err := bayes.NewPosterior(bound, bayes.Draws{Phi: phi, LogWeights: bayes.EqualLogWeights(2)}, bayes.Origin{
		FeatureNames: []string{"area", "town=Köln", "town=Ulm"}, TargetNames: []string{"y"}, Engine: engine})
	tell(err)
	return p
}

// A service of predictions in a page of Go: JSON in, mean, standard deviation and interval of each row out.
func Example_serve() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	s := newService(trained(must)) // posterior, err := bayes.Load("data.posterior")
	server := httptest.NewServer(s.handler())
	defer server.Close() // in a program: s.serve(run.Context(), ":8080")

	body := `{"rows": [{"area": 1, "town": "Ulm"}, {"area": 2, "town": "Köln"}]}`
	response, err := http.Post(server.URL+"/predict", "application/json", strings.NewReader(body))
	must(err)
	defer response.Body.Close()
	var a answer
	must(json.NewDecoder(response.Body).Decode(&a))
	fmt.Printf("mean %.2f, sd %.2f, 90 %% from %.2f to %.2f\n", a.Mean, a.StdDev, a.Lower, a.Upper)
	// Output:
	// mean [5.00 4.00], sd [0.10 0.10], 90 % from [4.84 3.84] to [5.16 4.16]
}

// What is wrong with a request is refused, with its row and column, and counted; requests at a time have their own
// answers.
func TestServe(t *testing.T) {
	s := newService(trained(func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}))
	s.mostRows = 5
	s.mostBytes = 2000
	server := httptest.NewServer(s.handler())
	defer server.Close()
	post := func(body io.Reader) (int, string) {
		response, err := http.Post(server.URL+"/predict", "application/json", body)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		return response.StatusCode, string(text)
	}
	row := `{"area": 1, "town": "Ulm"}`
	for _, c := range []struct {
		body, want string
		status     int
	}{
		{`{"rows": []}`, "no row", 400},
		{`{"rows": [{"area": 1}]}`, `a column "town", with categories`, 400},
		{`{"rows": [` + row + `, {"area": "wide", "town": "Ulm"}]}`, `row 1 (line 3), column "area"`, 400},
		{`{"rows": [{"area": NaN, "town": "Ulm"}]}`, "invalid character", 400},
		{`{"rows": [{"area": "NaN", "town": "Ulm"}]}`, `column "area": the value is missing`, 400},
		{`{"rows": [{"area": null, "town": "Ulm"}]}`, `column "area": the value is missing`, 400},
		{`{"rows": [{"area": null}]}`, `column "town"`, 400},
		{`{"rows": [{"area": 1, "town": "Rom"}]}`, `"Rom" is none of`, 400},
		{`{"rows": [{"area": [1], "town": "Ulm"}]}`, "cannot read", 400},
		{`{"rows": [` + row + `, {"area": 1, "town": "Ulm", "more": 2}]}`, "other columns", 400},
		{`{"rows": [` + row + `], "level": 2}`, "level is 2", 400},
		{`{"rows": [` + strings.Repeat(row+",", 5) + row + `]}`, "at most 5", 413},
		{`{"rows": [` + strings.Repeat(row+",", 500) + row + `]}`, "too large", 413},
		{`{`, "EOF", 400},
		{`{"rows": [{"area": 1, "town": 1000000}]}`, `"1000000" is none of`, 400},
		{`{"rows": [` + row + `], "levl": 0.5}`, `unknown field "levl"`, 400},
		{`{"rows": [` + row + `]} {"rows": []}`, "more after the object", 400},
		{`{"rows": [` + row + `]} and more`, "invalid character 'a'", 400},
		{`{"rows": [` + row + `]}` + strings.Repeat(" ", 3000), "too large", 413},
	} {
		if status, text := post(strings.NewReader(c.body)); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%.80s: %d %q, want %d and %q", c.body, status, text, c.status, c.want)
		}
	}
	// A gigabyte is not read.
	if status, _ := post(io.MultiReader(strings.NewReader(`{"rows": "`), &endless{left: 1 << 30})); status != 413 {
		t.Errorf("a gigabyte: %d", status)
	}
	coded, err := http.NewRequest(http.MethodPost, server.URL+"/predict", strings.NewReader("\x1f\x8b"))
	if err != nil {
		t.Fatal(err)
	}
	coded.Header.Set("Content-Encoding", "gzip")
	if refused, err := http.DefaultClient.Do(coded); err != nil || refused.StatusCode != 415 {
		t.Errorf("gzip: %v, %v", refused, err)
	} else {
		refused.Body.Close()
	}
	if status, text := post(strings.NewReader(`{"rows": [` + row + `]}` + "\n")); status != 200 || !strings.Contains(text,
		`"Mean":[5]`) {
		t.Errorf("one row: %d %s", status, text)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			status, text := post(strings.NewReader(fmt.Sprintf(`{"rows": [{"area": %d, "town": "Köln"}]}`, i)))
			if status != 200 || !strings.Contains(text, fmt.Sprintf(`"Mean":[%d]`, 2*i)) {
				t.Errorf("area %d: %d %s", i, status, text)
			}
		})
	}
	all.Wait()
	response, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text),
		"requests_answered 41\nrequests_refused 21\n") {
		t.Errorf("metrics: %v %s", err, text)
	}
}

// A service that is ended answers the requests that are under way, and ends after them.
func TestServeEnds(t *testing.T) {
	s := newService(trained(func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, address) }()
	body, rest := io.Pipe()
	go func() {
		_, _ = io.WriteString(rest, `{"rows": [`)
		time.Sleep(200 * time.Millisecond) // the service reads it
		end()
		time.Sleep(300 * time.Millisecond) // a service that does not wait has ended by then
		select {
		case err := <-done:
			t.Errorf("it ended with a request under way: %v", err)
			done <- err
		default:
		}
		_, _ = io.WriteString(rest, `{"area": 1, "town": "Ulm"}]}`)
		_ = rest.Close()
	}()
	health := "http://" + address + "/health"
	for _, err = http.Get(health); err != nil; _, err = http.Get(health) {
		time.Sleep(10 * time.Millisecond)
	}
	response, err := http.Post("http://"+address+"/predict", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), `"Mean":[5]`) {
		t.Errorf("the request under way: %v %s", err, text)
	}
	if err := <-done; err != nil {
		t.Errorf("a service that was ended: %v", err)
	}
}

// endless is so many letters.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range n {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}
