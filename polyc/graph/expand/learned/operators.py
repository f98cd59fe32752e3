"""Operator of ai.onnx.ml -> the nodes that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from polyc.graph.expand.learned.encoders import expand_category_mapper, expand_label_encoder
from polyc.graph.expand.learned.ensembles import expand_tree_classifier, expand_tree_regressor
from polyc.graph.expand.learned.features import (
    expand_binarizer,
    expand_feature_extractor,
    expand_feature_vectorizer,
    expand_imputer,
    expand_normalizer,
    expand_one_hot_encoder,
    expand_scaler,
)
from polyc.graph.expand.learned.linear import expand_linear_classifier, expand_linear_regressor
from polyc.graph.expand.learned.support_vectors import expand_svm_classifier, expand_svm_regressor
from polyc.graph.expand.learned.tree_ensemble import expand_tree_ensemble
from polyc.graph.ir import Body, Node, Tensor

LEARNED: Mapping[str, Callable[[Node, Sequence[Tensor | None]], Body]] = {
    "ArrayFeatureExtractor": expand_feature_extractor,
    "Binarizer": expand_binarizer,
    "CategoryMapper": expand_category_mapper,
    "FeatureVectorizer": expand_feature_vectorizer,
    "Imputer": expand_imputer,
    "LabelEncoder": expand_label_encoder,
    "LinearClassifier": expand_linear_classifier,
    "LinearRegressor": expand_linear_regressor,
    "Normalizer": expand_normalizer,
    "OneHotEncoder": expand_one_hot_encoder,
    "SVMClassifier": expand_svm_classifier,
    "SVMRegressor": expand_svm_regressor,
    "Scaler": expand_scaler,
    "TreeEnsemble": expand_tree_ensemble,
    "TreeEnsembleClassifier": expand_tree_classifier,
    "TreeEnsembleRegressor": expand_tree_regressor,
}
